import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { temporaryFolder } from '../../support/basics/folder.js';
import { freePort } from '../../support/basics/free-port.js';
import { until } from '../../support/basics/until.js';
import { envFor, runCommand, spawnCommand } from '../../support/clients/command.js';
import { startService } from '../../support/service/service.js';

const count = 60;

/** Creates a batch in a folder. */
async function makeBatch() {
  const folder = await temporaryFolder();
  const prompts = join(folder.path, 'prompts.jsonl');
  const answers = join(folder.path, 'answers.jsonl');
  const lines = Array.from({ length: count }, (_, id) => JSON.stringify({ id, prompt: `Hello, my name is N${id}` }));
  await writeFile(prompts, `${lines.join('\n')}\n`);
  const read = () => readFile(answers, 'utf8').catch(() => '');
  return {
    args: ['batch', prompts, '-o', answers],
    written: async () => (await read()).split('\n').length - 1,
    /** Throws if a line is not JSON. */
    records: async () =>
      (await read())
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly id: number; readonly response?: string }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

function expectEachOnce(records: readonly { readonly id: number; readonly response?: string }[]): void {
  expect(records.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, id) => id));
  for (const { id, response } of records) expect(response).toContain(`N${id}`);
}

describe('A batch', () => {
  it('resumes after a kill, and answers each line once', async () => {
    await using service = await startService();
    await using batch = await makeBatch();
    for (const target of [5, 20, 35]) {
      const command = spawnCommand(batch.args, envFor(service));
      await until(async () => (await batch.written()) >= target, `${target} lines`);
      command.kill('SIGKILL');
      await once(command, 'exit');
    }
    const { code, stderr } = await runCommand(batch.args, { env: envFor(service) });
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('already answered') });
    expectEachOnce(await batch.records());
    const again = await runCommand(batch.args, { env: envFor(service) });
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining(`0 answered, 0 failed, ${count} done`) });
  });

  it('waits for a killed service to restart, and sends the lost prompts again', async () => {
    await using batch = await makeBatch();
    const port = await freePort();
    const start = () => startService({ env: { MODEL_API_PORT: String(port) } });
    const first = await start();
    const command = spawnCommand(batch.args, { MODEL_API_PORT: String(port) });
    const said = text(command.stderr as NodeJS.ReadableStream);
    const ended = once(command, 'exit');
    await until(async () => (await batch.written()) >= 5, '5 lines');
    first.process.kill('SIGKILL');
    await first.exited;
    await until(async () => (await first.jobProcesses()).length === 0, 'the end of its jobs');
    await first.stop();
    await using _ = await start();
    expect(await ended).toEqual([0, null]);
    expect(await said).toMatch(/waiting: .*The service has lost a batch/s);
    expectEachOnce(await batch.records());
  });

  it('stops at Ctrl-C, and writes the answers that exist', async () => {
    await using service = await startService();
    await using batch = await makeBatch();
    const command = spawnCommand([...batch.args, '--ordered'], envFor(service));
    const said = text(command.stderr as NodeJS.ReadableStream);
    const ended = once(command, 'exit');
    await until(async () => (await batch.written()) >= 5, '5 lines');
    command.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(await said).toContain('To resume: prompt-relay batch ');
    const ids = (await batch.records()).map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(ids.length).toBeLessThan(count);
    expect((await runCommand(batch.args, { env: envFor(service) })).code).toBe(0);
    expectEachOnce(await batch.records());
  });

  it('sends messages, and retries failed ones on request', async () => {
    await using service = await startService();
    await using folder = await temporaryFolder();
    const [prompts, answers] = [join(folder.path, 'p'), join(folder.path, 'a')];
    const messages = ['I am Ada', 'Hello', 'What is my name?'].map((content, index) => ({
      role: index === 1 ? 'assistant' : 'user',
      content,
    }));
    await writeFile(prompts, `${JSON.stringify({ id: 'm', messages })}\n{"id":"x","prompt":"x","model":"none"}\n`);
    const args = ['batch', prompts, '-o', answers];
    expect((await runCommand(args, { env: envFor(service) })).code).toBe(1);
    const lines = (await readFile(answers, 'utf8')).trim().split('\n');
    expect(lines.toSorted().map((line) => JSON.parse(line))).toMatchObject([
      { id: 'm', line: 1, response: expect.any(String), usage: { input_tokens: expect.any(Number) } },
      { id: 'x', line: 2, error: { code: 'cli_error', reason: 'model_unknown' } },
    ]);
    await writeFile(prompts, `${JSON.stringify({ id: 'm', messages })}\n{"id":"x","prompt":"x"}\n`);
    expect((await runCommand(args, { env: envFor(service) })).code).toBe(1);
    expect((await runCommand([...args, '--retry-failed'], { env: envFor(service) })).code).toBe(0);
  });

  it('lists the invalid lines of a file, and sends nothing', async () => {
    await using service = await startService();
    const input = '{"prompt":"x"}\n{"prompt":1}\n';
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'p'), input);
    const { code, stderr } = await runCommand(['batch', join(folder.path, 'p')], { env: envFor(service) });
    expect({ code, stderr }).toMatchObject({ code: 65, stderr: expect.stringContaining('line 2: prompt: ') });
    const piped = await runCommand(['batch', '-'], { env: envFor(service), input });
    expect(piped.code).toBe(1);
    const records = piped.stdout.trim().split('\n');
    expect(records.map((line) => Object.keys(JSON.parse(line)).includes('error')).toSorted()).toEqual([false, true]);
  });
});
