import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { startWithProgram } from '../../support/service/service.js';

const folder = shared(temporaryFolder);
const gate = shared(createAnswerGate);
const keyOf = (name: string) => ({ 'x-api-key': `${name}-key-0123456789abcdef` });
const groups = { ada: 'bio', bob: 'bio', eve: 'ended', ann: 'small', joe: 'ended' };
const keyLines = Object.entries(groups).map(
  ([name, group]) => `${name}:sha256:${digestOf(keyOf(name)['x-api-key'])}:group=${group}`,
);
const groupLines = [
  '@institute running=1',
  '@bio in=institute',
  '@ended expires=2026-01-01',
  '@small each=tokens:2/day models=gone',
];

async function writeKeys(...lines: readonly string[]): Promise<string> {
  const path = join((await folder()).path, 'keys');
  await writeFile(path, `${[...keyLines, ...lines].join('\n')}\n`, { mode: 0o600 });
  return path;
}

/** Has three slots, and people whom a proxy signs on. The program answers while the gate is open. */
const service = shared(async () => {
  const proxy = {
    MODEL_API_TRUST_PROXY: '127.0.0.1',
    MODEL_API_USER_HEADER: 'X-User',
    MODEL_API_GROUPS_HEADER: 'X-Groups',
  };
  const env = { ...proxy, MODEL_API_MAX_CONCURRENT: '3', MODEL_API_KEYS_FILE: await writeKeys(...groupLines) };
  return startWithProgram((await gate()).command, env);
});

const person = (name: string, named: string) => ({ 'x-user': name, 'x-groups': named });
const ask = async (headers: Record<string, string>, fields: object = {}) =>
  (await service()).post('/ask', { prompt: 'Hello', ...fields }, headers);

describe('A group', () => {
  beforeEach(async () => (await gate()).open());

  it('refuses its keys and its people from its last day on, and names itself', async () => {
    const message = 'the group ended ended at 2026-01-01T00:00:00.000Z: ask the operator';
    for (const headers of [keyOf('eve'), person('kim', 'ended')]) {
      const { status, body } = await ask(headers);
      expect([status, body]).toEqual([401, expect.objectContaining({ error: 'unauthorized', message })]);
    }
    expect((await ask(person('kim', 'ended,lab'))).status).toBe(401);
    expect((await ask(person('kim', 'ended,bio'))).status).toBe(200);
  });

  it('limits the models and the tokens of each member', async () => {
    expect((await ask(keyOf('ann'), { model: 'other' })).status).toBe(400);
    await writeKeys('@small each=tokens:2/day');
    await until(async () => (await ask(keyOf('joe'))).status === 200, 'the new lines');
    expect((await ask(keyOf('ann'))).status).toBe(200);
    const { status, body } = await ask(keyOf('ann'));
    expect([status, body]).toMatchObject([
      429,
      { reason: 'budget', message: expect.stringContaining('of the API key') },
    ]);
    expect((await ask(person('pia', 'small'))).status).toBe(200);
    expect((await ask(person('pia', 'small'))).body.message).toContain('of this person');
    const { body: usage } = await (await service()).get('/usage', keyOf('ann'));
    expect(usage.budgets).toEqual([expect.objectContaining({ client: 'ann', kind: 'key' })]);
    await writeKeys(...groupLines);
    await until(async () => (await ask(keyOf('joe'))).status === 401, 'the old lines');
  });

  it('counts jobs that ran before it got its limit, and lets further ones wait, which a new limit lets start', async () => {
    await (await gate()).close();
    const to = await service();
    const statusOfJoe = async () => (await to.get('/usage', keyOf('joe'))).status;
    await writeKeys();
    await until(async () => (await statusOfJoe()) === 200, 'no lines of groups');
    const jobs = [ask(keyOf('ada'))];
    await until(async () => (await metric(to, 'jobs_active')) === 1, 'the first job');
    await writeKeys(...groupLines);
    await until(async () => (await statusOfJoe()) === 401, 'the lines of groups');
    jobs.push(ask(keyOf('bob')));
    await until(async () => (await metric(to, 'jobs_queued')) === 1, 'the waiting job');
    jobs.push(ask(person('lea', 'art')));
    await until(async () => (await metric(to, 'jobs_active')) === 2, 'the job of another group');
    await writeKeys(...groupLines.map((line) => line.replace('running=1', 'running=2')));
    await until(async () => (await metric(to, 'jobs_active')) === 3, 'the job with the new limit');
    await (await gate()).open();
    for (const { status } of await Promise.all(jobs)) expect(status).toBe(200);
  });
});
