import { join } from 'node:path';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService, startWithProgram } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

const key = { 'idempotency-key': 'k' };

function storeIn(folder: { readonly path: string }) {
  return { MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
}

async function kill(service: Service): Promise<void> {
  service.process.kill('SIGKILL');
  await service.exited;
}

describe('Requests with an Idempotency-Key, and a store in a file', () => {
  it('still get their answers after a kill', async () => {
    await using folder = await temporaryFolder();
    const env = storeIn(folder);
    const bodies = [{ message: 'one' }, { message: 'two', stream: true }];
    const send = (service: Service) =>
      Promise.all(bodies.map((body, n) => service.post('/chat', body, { 'idempotency-key': `key ${n}` })));
    const service = await startService({ env });
    const first = await send(service);
    await kill(service);
    await service.stop();
    await using next = await startService({ env });
    const again = await send(next);
    expect(again.map(({ text }) => text)).toEqual(first.map(({ text }) => text));
    expect(again.map(({ headers }) => headers.get('idempotency-replayed'))).toEqual(['true', 'true']);
    expect((await next.get('/chat')).body.conversations).toHaveLength(2);
  });

  it('run again if the service was killed before it had an answer', async () => {
    await using folder = await temporaryFolder();
    await using gate = await createAnswerGate();
    const env = storeIn(folder);
    const service = await startWithProgram(gate.command, env);
    const cut = service.post('/ask', { prompt: 'once' }, key).catch(() => 'cut');
    await untilJobs(service, 1, 0);
    await kill(service);
    expect(await cut).toBe('cut');
    await service.stop().catch(() => {}); // the model CLI outlives the service by a moment
    await gate.open();
    await using next = await startWithProgram(gate.command, env);
    const answer = await next.post('/ask', { prompt: 'once' }, key);
    expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([200, null]);
  });
});

describe('Requests with an Idempotency-Key, at two hosts with one Redis', () => {
  it('run the model once, and get its answer from both', async () => {
    await using redis = await startRedis('--appendonly', 'no');
    await using gate = await createAnswerGate();
    const env = { MODEL_API_STORE: redis.url };
    await using one = await startWithProgram(gate.command, env);
    await using other = await startWithProgram(gate.command, env);
    const send = (host: Service) => host.post('/chat', { message: 'once' }, key);
    const first = send(one);
    await untilJobs(one, 1, 0);
    expect(await send(other)).toMatchObject({ status: 409, body: { error: 'idempotency_in_progress' } });
    await gate.open();
    const { text, body } = await first;
    for (const host of [one, other]) {
      const again = await send(host);
      expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([text, 'true']);
    }
    expect((await other.get(`/chat/${body.conversation_id}`)).body).toMatchObject({ message_count: 2 });
  });
});

const isRoot = process.getuid?.() === 0;

(isRoot ? describe : describe.skip)('Requests with an Idempotency-Key, and a full disk', () => {
  it('are told that the answer was not recorded, and earlier answers are still replayed', async () => {
    await using disk = await mountTinyDisk(1024 * 1024);
    await using service = await startService({ env: storeIn(disk) });
    const ask = (name: string) => service.post('/ask', { prompt: 'x'.repeat(100_000) }, { 'idempotency-key': name });
    const before = await ask('before');
    await disk.fill();
    let lost = await ask('lost 0');
    for (let n = 1; n < 20 && lost.headers.get('idempotency-recorded') === null; n++) lost = await ask(`lost ${n}`);
    expect([lost.status, lost.headers.get('idempotency-recorded')]).toEqual([200, 'false']);
    const again = await ask('before');
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([before.text, 'true']);
    await disk.empty();
    await service.log('store_back');
    expect((await ask('after')).headers.get('idempotency-recorded')).toBeNull();
    expect((await ask('after')).headers.get('idempotency-replayed')).toBe('true');
  });
});
