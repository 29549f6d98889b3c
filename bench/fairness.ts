import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { type Answer, type Service, startWithProgram, twoWorkers } from '../test/support/service/service.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const maxJobs = 2;
const jobs = 1000;
const lanes = 250;
const modestJobs = 20;
const keys = { greedy: { 'x-api-key': 'key-of-greedy' }, modest: { 'x-api-key': 'key-of-modest' } };
const program = `/bin/sh -c 'sleep 0.1; exec cat'`;

interface Round {
  readonly waitMs: number;
  readonly jobMs: number;
}

/** Measures how long a client with one job at a time waits while another client has a thousand, counted in jobs. */
export async function fairness(rounds: number): Promise<Row[]> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'keys');
  await writeFile(file, 'greedy key-of-greedy\nmodest key-of-modest\n');
  const env = { ...twoWorkers, MODEL_API_KEY_FILE: file, MODEL_API_STANDBY: '0', MODEL_API_QUEUE_TIMEOUT_MS: '60000' };
  await using service = await startWithProgram(program, env);
  const measured: { readonly alone: Round; readonly beside: Round; readonly refused: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const alone = await askOneByOne(service);
    measured.push({ alone, ...(await besideGreedy(service)) });
  }
  const extra = measured.map(({ alone, beside }) => (beside.waitMs - alone.waitMs) / alone.jobMs);
  const [waits, bare] = [measured.map(({ beside }) => beside.waitMs), measured.map(({ alone }) => alone.waitMs)];
  const jobMs = median(measured.map(({ alone }) => alone.jobMs));
  const refused = measured.reduce((sum, round) => sum + round.refused, 0);
  return [
    {
      question: `Median wait of a client with one job at a time beside one with ${jobs}, over having 4 slots to itself`,
      target: `≤ ${maxJobs} jobs, none refused`,
      measured: `${median(extra).toFixed(2)} jobs (${spread(extra, 2)}) of ${jobMs.toFixed(0)} ms: ${median(waits).toFixed(0)} ms against ${median(bare).toFixed(0)} ms; ${refused} refused`,
      holds: median(extra) <= maxJobs && refused === 0,
    },
  ];
}

async function besideGreedy(service: Service): Promise<{ readonly beside: Round; readonly refused: number }> {
  const stop = new AbortController();
  const left = { jobs };
  const greedy = Promise.all(Array.from({ length: lanes }, () => keepAsking(service, left, stop.signal)));
  await sleep(500);
  const before = await refusedOf(service);
  const beside = await askOneByOne(service);
  const refused = (await refusedOf(service)) - before;
  if (left.jobs === 0) throw new Error('the greedy client has finished too early');
  stop.abort();
  await greedy;
  return { beside, refused };
}

/** Sends the remaining jobs, and retries a second after each refusal. */
async function keepAsking(service: Service, left: { jobs: number }, signal: AbortSignal): Promise<void> {
  while (left.jobs > 0 && !signal.aborted) {
    const answer = await ask(service, 'greedy', signal).catch(() => null);
    if (answer?.status === 200) left.jobs--;
    else await sleep(1000, null, { signal }).catch(() => {});
  }
}

async function askOneByOne(service: Service): Promise<Round> {
  const answers: Answer[] = [];
  while (answers.length < modestJobs) answers.push(await ask(service, 'modest'));
  const answered = answers.filter(({ status }) => status === 200);
  const figure = (name: string) => median(answered.map(({ body }) => Number(body[name])));
  return { waitMs: figure('queue_ms'), jobMs: figure('duration_ms') };
}

function ask(service: Service, client: keyof typeof keys, signal?: AbortSignal): Promise<Answer> {
  return service.post('/ask', { prompt }, keys[client], signal);
}

async function refusedOf(service: Service): Promise<number> {
  const { usage } = (await service.get('/usage', keys.modest)).body as { usage: { client: string; refused: number }[] };
  return usage.filter(({ client }) => client === 'modest').reduce((sum, { refused }) => sum + refused, 0);
}
