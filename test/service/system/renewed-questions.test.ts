import { setTimeout as sleep } from 'node:timers/promises';
import type { HealthBody } from '../../../src/shared/api/health.js';
import { until } from '../../support/basics/until.js';
import { Exposition } from '../../support/documents/exposition.js';
import { headersOf, type KeyHolder, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

const holders: readonly KeyHolder[] = ['operator', 'alice', 'bob'];
const questions = 200;

let keys: NamedKeys;
let service: Service;

beforeAll(async () => {
  keys = await writeNamedKeys();
  const env = { ...keys.env, MODEL_API_CLI: 'claude', MODEL_API_LIVE_SESSIONS: '8', MODEL_API_MAX_CONCURRENT: '4' };
  service = await startWithProgram(script('rewinds.pl'), env);
});
afterAll(async () => {
  await service.stop();
  await keys[Symbol.asyncDispose]();
});

function ask(holder: KeyHolder, prompt: string, more: object = {}) {
  return service.post('/ask', { prompt, ...more }, headersOf(holder));
}

/** Asks, and disconnects when the answer has begun. */
async function askAndLeave(holder: KeyHolder, prompt: string): Promise<void> {
  const leaver = new AbortController();
  const headers = { ...headersOf(holder), 'content-type': 'application/json' };
  const body = JSON.stringify({ prompt, stream: true });
  const response = await fetch(`${service.url}/ask`, { method: 'POST', headers, body, signal: leaver.signal });
  for await (const piece of response.body ?? []) if (Buffer.from(piece).includes('one moment')) break;
  leaver.abort();
}

/** Returns the process that answered, and what was in its context beside this prompt. */
function contextOf(answer: unknown): { readonly pid: string; readonly context: string } {
  const [pid = '', ...rest] = String(answer).split('|');
  return { pid, context: rest.join('|') };
}

async function renewed(): Promise<number> {
  const { text } = await service.get('/metrics', headersOf('operator'));
  return new Exposition(text).value('questions_total{cli="claude",process="renewed"}');
}

describe('Questions of several clients in renewed processes', () => {
  it(`never see another question: ${questions} of them, with failures, cancels, deaths and other settings`, async () => {
    const clientOf = new Map<string, string>();
    const left = Array.from({ length: questions }, (_, index) => index);
    const faults: string[] = [];
    const one = async (index: number) => {
      const holder = holders[index % holders.length] ?? 'bob';
      const canary = `canary-${index}`;
      const kind = ['', '', '', '', '', 'fail', '', 'wait', '', index % 50 === 9 ? 'die' : ''][index % 10];
      if (kind === 'wait') return askAndLeave(holder, `${canary} wait`);
      const model = index % 7 === 0 ? 'opus' : null;
      const effort = index % 5 === 0 ? 'low' : null;
      const system = index % 4 === 0 ? 'Be brief.' : null;
      const more = { ...(model && { model }), ...(effort && { effort }), ...(system && { system }) };
      const { status, body } = await ask(holder, `${canary} ${kind}`, more);
      if (kind !== '') return void (status === 200 && faults.push(`${canary} ${kind} was answered`));
      const { pid, context } = contextOf(body.response);
      const expected = [model ?? '', effort ?? '', system ?? '', `${canary} `].join('|');
      if (status !== 200 || context !== expected) faults.push(`${canary}: ${status} ${context}`);
      if ((clientOf.get(pid) ?? holder) !== holder) faults.push(`${pid} served ${holder} and ${clientOf.get(pid)}`);
      clientOf.set(pid, holder);
    };
    const run = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await one(next);
    };
    await Promise.all(Array.from({ length: 4 }, run));
    expect(faults).toEqual([]);
    expect(await renewed()).toBeGreaterThan(questions / 2);
  });

  it.each(['lie-keeps', 'lie-other', 'lie-late', 'lie-twice', 'lie-delta'])(
    'end a program that lies: %s',
    async (lie) => {
      const { pid: liar } = contextOf((await ask('alice', `canary ${lie}`)).body.response);
      await sleep(50); // a delta after the proof comes a moment later
      const { pid, context } = contextOf((await ask('alice', 'next')).body.response);
      expect([pid === liar, context]).toEqual([false, '|||next']);
    },
  );

  it('end a program that does not end its turn in time', async () => {
    await askAndLeave('bob', 'canary wait slowly');
    expect(contextOf((await ask('bob', 'next')).body.response).context).toBe('|||next');
  });

  it('are not renewed for a client after three lies in a row, and the status says for how long and why', async () => {
    const health = async () => (await service.get('/health', headersOf('operator'))).body as unknown as HealthBody;
    for (let count = 0; count < 3; count++) await ask('bob', 'canary lie-keeps');
    await until(async () => (await health()).observability.renewals?.[0]?.paused_clients === 1, 'the pause');
    const { pid } = contextOf((await ask('bob', 'one')).body.response);
    expect(contextOf((await ask('bob', 'two')).body.response).pid).not.toBe(pid);
    const [faults] = (await health()).observability.renewals ?? [];
    expect(faults).toMatchObject({ cli: 'claude', kind: 'renewal', paused_clients: 1 });
    // On a busy host, the last renewal of another client may have been late.
    expect(['unproven', 'late']).toContain(faults?.reason);
    expect(faults?.failing_clients).toBeGreaterThanOrEqual(1);
  });
});
