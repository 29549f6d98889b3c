import { type ToolResult, textOf } from '../../support/clients/mcp.js';
import { type SdkClient, startSdkClient } from '../../support/clients/sdk-client.js';
import { orderedProgram } from '../../support/clients/sdk-lab.js';
import { recovers } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

let client: SdkClient;
let demo: Service;
let ordered: Service;
beforeAll(async () => {
  client = await startSdkClient('mcp');
  demo = await startService();
  ordered = await startService({ env: orderedProgram });
}, 600_000);
afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await demo?.stop();
  await ordered?.stop();
});

describe.each([
  ['first', '2025-11-25'],
  ['newer', '2025-11-25'],
  ['stateless', '2026-07-28'],
])('The official MCP client (%s)', (face, expected) => {
  const tool = async (service: Service, model: string, extra: Readonly<Record<string, unknown>>) =>
    (await client.call<ToolResult>(service, face, 'tool', { model, extra })).result;

  it('connects and finds the tools', async () => {
    const { result } = await client.call<{ server: object; version: string }>(demo, face, 'server', {});
    expect(result).toMatchObject({ server: { name: 'prompt-relay' }, version: expected });
    expect((await client.call(demo, face, 'tools', {})).result).toEqual(['ask', 'models', 'job']);
  });

  it('pings, unless its version has no ping', async () => {
    if (expected !== '2026-07-28') expect((await client.call(demo, face, 'ping', {})).result).toEqual({});
    else expect((await client.failure(demo, face, 'ping', {})).failure).toMatchObject({ name: expect.any(String) });
  });

  it('calls the tools, with and without a schema, and lists the models', async () => {
    expect(textOf(await tool(demo, 'ask', { prompt: 'Hello, my name is Ada' }))).toContain('Ada');
    expect((await tool(demo, 'ask', { prompt: 'Where?', schema })).structuredContent).toEqual({
      city: expect.any(String),
    });
    expect((await tool(demo, 'models', {})).structuredContent?.models).toEqual((await demo.get('/models')).body.models);
  });

  it('receives the progress of a long answer', async () => {
    const { result } = await client.call<{ result: ToolResult; notes: { message: string }[] }>(
      ordered,
      face,
      'progress',
      {
        extra: { prompt: 'drip 24 100' },
      },
    );
    expect(textOf(result.result)).toMatch(/^1 2 3 .* 24 $/);
    expect(result.notes.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['the model is working', expect.stringMatching(/^the answer has \d+ characters/)]),
    );
  });

  it('starts a background job, and polls it until its answer', async () => {
    const { result } = await client.call<ToolResult>(demo, face, 'background', { extra: { prompt: 'Where?', schema } });
    expect(result.structuredContent).toMatchObject({ status: 'succeeded', structured: { city: expect.any(String) } });
    const failed = await client.call<ToolResult>(ordered, face, 'background', { extra: { prompt: 'die' } });
    expect(failed.result).toMatchObject({ isError: true, structuredContent: { error: { code: 'cli_error' } } });
  });

  it('receives a failure as a result, and a refusal as an error', async () => {
    expect(await tool(ordered, 'ask', { prompt: 'die' })).toMatchObject({ isError: true });
    expect(await tool(demo, 'ask', {})).toMatchObject({ isError: true });
    const { failure } = await client.failure(demo, face, 'tool', { model: 'shell', extra: {} });
    expect(failure).toMatchObject({ code: -32602, message: expect.stringContaining('ask, models, job') });
  });

  it('ends the program when it disconnects in the middle of an answer', async () => {
    const { result } = await client.call(ordered, face, 'leave', { extra: { prompt: 'hang' } });
    expect(result).toBe('aborted');
    await recovers(ordered);
  });
});
