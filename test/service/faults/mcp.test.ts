import { connect } from 'node:net';
import { startReportingModel } from '../../support/agents/reporting-model.js';
import { call, messagesIn, resultOf, send, type ToolResult } from '../../support/clients/mcp.js';
import { jsonPost } from '../../support/clients/raw-http.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, twoWorkers } from '../../support/service/service.js';

const progress = { _meta: { progressToken: 1 } };
const manners = [
  ['JSON', 'application/json'],
  ['events', 'application/json, text/event-stream'],
] as const;
const answerBytes = 10 * 1024 * 1024;

/** Calls the tool, and reads nothing. */
function callAndIgnore(service: Service, prompt: string, accept: string) {
  const socket = connect(service.port, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(jsonPost('/mcp', JSON.stringify(call('ask', { prompt }, progress)), [`Accept: ${accept}`]));
  return socket;
}

describe.each(manners)('A call of the tool ask answered with %s', (_, accept) => {
  it('by a client that does not read disturbs no other client, and ends when the client disconnects', async () => {
    await using service = await startReportingModel({ MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes) });
    const sockets = Array.from({ length: 3 }, () => callAndIgnore(service, `big ${answerBytes}`, accept));
    expect((await resultOf(service, 'ask', { prompt: 'hello' })).isError).toBeUndefined();
    const { body } = await service.post('/ask', { prompt: 'hello' });
    expect(body.success).toBe(true);
    for (const socket of sockets) socket.destroy();
    await recovers(service);
  });

  it('is sent completely if the answer is long', async () => {
    await using service = await startReportingModel({ MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes) });
    const { text } = await send(service, call('ask', { prompt: `big ${answerBytes}` }, progress), { accept });
    const last = text.startsWith('{') ? JSON.parse(text) : messagesIn(text).at(-1);
    expect(last.result.content[0].text).toBe('x'.repeat(answerBytes));
  });

  it('is cancelled if its worker is killed', async () => {
    await using service = await startReportingModel(twoWorkers);
    const sent = service.post('/mcp', call('ask', { prompt: 'silent' }, progress), { accept });
    const lost = expect(sent).rejects.toThrow();
    await untilJobs(service, 1, 0);
    for (const pid of await service.workers()) process.kill(pid, 'SIGKILL');
    await lost;
    await recovers(service);
  });

  it('returns a result with the error if a drain cuts it off', async () => {
    await using service = await startReportingModel({ MODEL_API_DRAIN_TIMEOUT_SECONDS: '1' });
    const sent = service.post('/mcp', call('ask', { prompt: 'silent' }, progress), { accept });
    await untilJobs(service, 1, 0);
    service.process.kill('SIGTERM');
    const { status, text } = await sent;
    const last = text.startsWith('{') ? JSON.parse(text) : messagesIn(text).at(-1);
    expect([status, last.id, last.result.isError]).toEqual([200, 1, true]);
    expect(last.result.content[0].text).toContain('shutting_down');
    expect(await service.exited).toBe(1);
  });
});

/** Cancels jobs. Waiting jobs must come first: else the next one would start. */
async function cancelAll(service: Service, jobs: readonly ToolResult[]): Promise<void> {
  for (const { structuredContent } of jobs) {
    const cancelled = await resultOf(service, 'job', { job_id: structuredContent?.job_id, cancel: true });
    expect(cancelled.structuredContent?.status).toBe('cancelled');
  }
}

describe('A call of the tool ask for a background job', () => {
  it('is refused if the queue is full, and leaves nothing behind', async () => {
    await using service = await startReportingModel({ MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_JOBS: '1' });
    const running = await resultOf(service, 'ask', { prompt: 'silent', background: true });
    await untilJobs(service, 1, 0);
    const waiting = await resultOf(service, 'ask', { prompt: 'hello', background: true });
    const refused = await send(service, call('ask', { prompt: 'hello', background: true }));
    expect([refused.status, refused.rpc.error?.data?.error]).toEqual([429, 'concurrency_limited']);
    await cancelAll(service, [waiting, running]);
    await recovers(service);
  });

  it('is refused if the waiting jobs of its client have 48 MiB of text, and leaves nothing behind', async () => {
    await using service = await startReportingModel({ MODEL_API_MAX_CONCURRENT: '1' });
    const accepted = [await resultOf(service, 'ask', { prompt: 'silent', background: true })];
    await untilJobs(service, 1, 0);
    const long = { prompt: 'x'.repeat(9 * 1024 * 1024), background: true };
    for (let waiting = 1; waiting <= 5; waiting++) accepted.unshift(await resultOf(service, 'ask', long));
    const refused = await send(service, call('ask', long));
    expect([refused.status, refused.rpc.error?.data?.error]).toEqual([429, 'concurrency_limited']);
    await cancelAll(service, accepted);
    await recovers(service);
  });
});
