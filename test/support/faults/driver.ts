import { deepStrictEqual, ok } from 'node:assert';
import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { processCounts } from '../agents/reporting-model.js';
import { randomNumbers } from '../basics/random.js';
import type { TinyDisk } from '../basics/tiny-disk.js';
import { until } from '../basics/until.js';
import { statusOf, untilEnded as untilJobEnded } from '../clients/background.js';
import { resultsIn, untilEnded as untilBatchEnded } from '../clients/batches.js';
import { Exposition, fallen } from '../documents/exposition.js';
import { type Ledger, ledgerOf } from '../jobs/job-ledger.js';
import { untilJobs, untilTreeGone } from '../jobs/jobs.js';
import { isAlive } from '../processes/processes.js';
import { type Service, script, startService, twoWorkers } from '../service/service.js';
import { type Known, Lane } from './lane.js';
import { everyKind, RandomFaults, usualKinds } from './random-faults.js';

const operator = { 'x-api-key': 'a-key-of-the-operator' };
const slots = 6;
const lanes = 24;
/** Number of lanes that only make keys while the primary is killed. */
const keyMakers = 4;
/** Number of further jobs in which everything that must be seen should occur. */
const spareJobs = 1000;
/** Time after which a run with enough jobs fails with what it has not seen, before Jest ends it without a reason. */
const seeLimitMs = 200_000;
/** Each way to a process, and how often jobs must take it. Standby is rare on a busy machine, where jobs delay its starts. */
const waysToProcess: readonly (readonly [way: string, times: number])[] = [
  ['standby_total{result="hit"}', 1],
  ['live_session_total{result="hit"}', 6],
  ['live_session_total{result="replay"}', 6],
];
const timeLimitMs = 1000;
const patienceMs = 30_000;

export interface FaultyRun {
  readonly ledger: Ledger;
  readonly struck: RandomFaults['struck'];
  readonly seconds: number;
}

/** Starts a service with few slots, short limits, and a model that fails in many ways if it is told to. */
export function startFaulty(state: string): Promise<Service> {
  return startService({
    env: {
      ...twoWorkers,
      MODEL_API_CLI_COMMAND: script('converses.pl'),
      MODEL_API_KEY: operator['x-api-key'],
      MODEL_API_STATE_FOLDER: state,
      MODEL_API_FILES: 'memory',
      MODEL_API_STANDBY: '2',
      MODEL_API_LIVE_SESSIONS: '8',
      MODEL_API_LOG_LEVEL: 'debug',
      MODEL_API_MAX_CONCURRENT: String(slots),
      MODEL_API_MAX_QUEUE: '100',
      MODEL_API_TIMEOUT: String(timeLimitMs / 1000),
      MODEL_API_QUEUE_TIMEOUT_MS: '3000',
      MODEL_API_KILL_GRACE_MS: '100',
      MODEL_API_MAX_OUTPUT_BYTES: '1000000',
    },
  });
}

function lanesOf(service: Service, known: Known, seed: number): Lane[] {
  return Array.from({ length: lanes }, (_, index) => {
    return new Lane(`s${seed}-${index}`, service, operator, known, randomNumbers(seed + index));
  });
}

/**
 * Sends operations while faults occur, until this many jobs were admitted for sure, each usual kind of fault has
 * occurred, jobs have got their processes in each way, each kind of operation was answered, and a job was cancelled
 * because its worker died. Then waits until no job is left, and expects everything that clients know to be true.
 */
export async function runWithFaults(
  service: Service,
  known: Known,
  { jobs, seed, disk = null }: { readonly jobs: number; readonly seed: number; readonly disk?: TinyDisk | null },
): Promise<FaultyRun> {
  const startedMs = performance.now();
  const faults = new RandomFaults(service, everyKind, randomNumbers(seed + 1000), 1000, disk);
  const watch = new CounterWatch(service);
  const unseen = () => [
    ...usualKinds.filter((kind) => faults.struck[kind] === 0),
    ...waysToProcess.flatMap(([way, times]) => (watch.value(way) >= times ? [] : [way])),
    ...(known.hasEachKind ? [] : ['an answer to each kind of operation']),
    ...(hasCancelledLost(service, known) ? [] : ['a job that was cancelled with its worker']),
  ];
  const isLate = () => performance.now() - startedMs > seeLimitMs;
  const isOver = () => {
    const admitted = known.fates.filter(({ wasAdmitted }) => wasAdmitted === true).length;
    if (known.faults.length > 0 || admitted >= jobs + spareJobs) return true;
    return admitted >= jobs && (isLate() || unseen().length === 0);
  };
  const run = async (lane: Lane) => {
    while (!isOver()) await lane.act();
  };
  await Promise.all(lanesOf(service, known, seed).map(run));
  await faults[Symbol.asyncDispose]();
  await watch[Symbol.asyncDispose]();
  deepStrictEqual([...known.faults, ...watch.faults], []);
  deepStrictEqual(unseen(), []);
  await until(async () => (await service.workers().catch(() => [])).length === 2, 'both workers', patienceMs);
  await expectBatches(service, known);
  await expectAtRest(service, known);
  const seconds = (performance.now() - startedMs) / 1000;
  const ledger = await ledgerOf(service, known.fates, (id) => id.startsWith(`s${seed}-`));
  return { ledger, struck: faults.struck, seconds };
}

/** Whether a job was cancelled whose client has not left, but lost its connection. */
function hasCancelledLost(service: Service, known: Known): boolean {
  const ends = service.logs.filter(({ event, outcome }) => event === 'job_ended' && outcome === 'cancelled');
  const cancelled = new Set(ends.map(({ request_id }) => request_id));
  return known.fates.some(({ id, kind }) => kind === 'lost' && cancelled.has(id));
}

/** Scrapes until it is stopped, and notes each counter that falls. */
class CounterWatch {
  readonly faults: string[] = [];
  readonly #service: Service;
  readonly #running: Promise<void>;
  #last: Exposition | null = null;
  #isOver = false;

  constructor(service: Service) {
    this.#service = service;
    this.#running = this.#run();
  }

  value(counter: string): number {
    return this.#last?.value(counter) ?? 0;
  }

  async #run(): Promise<void> {
    for (; !this.#isOver; await sleep(300)) {
      const scrape = await this.#service.get('/metrics').catch(() => null); // the worker may be killed
      if (scrape === null) continue;
      if (scrape.status !== 200) this.faults.push(`a scrape ended with ${scrape.status}`);
      const now = new Exposition(scrape.text);
      if (this.#last !== null) this.faults.push(...fallen(this.#last.growing(), now.growing()));
      this.#last = now;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }
}

/** Expects that no slot, process or worker is lost, and that all that was stored is there. */
async function expectAtRest(service: Service, known: Known): Promise<void> {
  for (const id of known.backgroundJobs) await untilJobEnded(service, id, operator);
  await untilJobs(service, 0, 0, patienceMs);
  await expectAllSlots(service);
  await untilJobs(service, 0, 0, patienceMs);
  await until(
    async () => {
      const counts = await processCounts(service);
      const processes = await service.jobProcesses();
      const inReserve = Object.values(counts).reduce((sum, count) => sum + count);
      return counts.busy + counts.stopping === 0 && processes.length === inReserve;
    },
    'no process but those in reserve',
    patienceMs,
  );
  await expectKeys(service, known);
  for (const [id, text] of known.files)
    deepStrictEqual((await service.get(`/v1/files/${id}/content`, operator)).text, text);
  for (const id of known.backgroundJobs)
    ok(['succeeded', 'failed', 'cancelled'].includes(String(await statusOf(service, id, operator))));
  deepStrictEqual(new Set(known.callIds).size, known.callIds.length);
  deepStrictEqual(known.faults, []);
  const scrape = new Exposition((await service.get('/metrics')).text);
  deepStrictEqual(scrape.sum('client_jobs_total'), scrape.sum('jobs_total'));
  deepStrictEqual(
    service.logs.filter(({ event }) => event === 'internal_error'),
    [],
  );
  deepStrictEqual(service.stderr, []);
}

/** Expects that jobs can use every slot: a count of free slots could be wrong. */
async function expectAllSlots(service: Service): Promise<void> {
  await until(async () => {
    const jobs = Array.from({ length: slots }, () => service.post('/ask', { prompt: 'hang' }, operator));
    const runTogether = await untilJobs(service, slots, 0, timeLimitMs).catch(() => false); // on a busy machine
    await Promise.all(jobs);
    return runTogether;
  }, 'all slots to be used');
}

async function expectKeys(service: Service, known: Known): Promise<void> {
  const statusFor = async (key: string) => (await service.get('/usage', { 'x-api-key': key })).status;
  const { body } = await service.get('/keys', operator);
  const names = (body.keys as readonly { readonly name: string }[]).map(({ name }) => name);
  deepStrictEqual(
    [...known.keys.keys()].filter((name) => !names.includes(name)),
    [],
  );
  for (const key of [...known.keys.values()].slice(-5)) deepStrictEqual(await statusFor(key), 200);
  for (const key of [...known.removedKeys].slice(-5)) deepStrictEqual(await statusFor(key), 401);
}

/** Expects one result for each line of each batch. */
async function expectBatches(service: Service, known: Known): Promise<void> {
  for (const [id, lines] of known.batches) {
    const { output_file_id: output, error_file_id: errors } = await untilBatchEnded(service, id, patienceMs, operator);
    const results = [...(await resultsIn(service, output, operator)), ...(await resultsIn(service, errors, operator))];
    deepStrictEqual(results.map(({ custom_id }) => custom_id).toSorted(), lines.toSorted());
  }
}

/**
 * Kills the primary under load, while some clients make keys. Expects that no client waits forever, and that nothing is
 * left.
 */
export async function killUnderLoad(service: Service, known: Known, seed: number): Promise<void> {
  const random = randomNumbers(seed + 2000);
  const workers = await service.workers();
  const [jobsBefore, keysBefore] = [known.fates.length, known.madeKeys];
  const keysToMake = 3 + Math.floor(random() * 12);
  let isKilled = false;
  const run = async (lane: Lane, index: number) => {
    while (!isKilled) await (index < keyMakers ? lane.makeKey() : lane.act());
  };
  const load = Promise.all(lanesOf(service, known, seed + 100).map(run));
  const hasAnswered = () => known.fates.slice(jobsBefore).some(({ kind }) => kind === 'answered');
  await until(() => hasAnswered() && known.madeKeys - keysBefore >= keysToMake, 'answers', patienceMs);
  service.process.kill('SIGKILL');
  isKilled = true;
  await service.exited;
  await load;
  await until(() => !workers.some(isAlive), 'the workers to be gone', patienceMs);
  await untilTreeGone(service, patienceMs);
  await until(async () => (await readdir(service.home)).length === 0, 'its folders to be gone', patienceMs);
  deepStrictEqual(known.faults, []);
  known.forgetMemory();
}

/** Expects that a service with the state of killed ones has what these have answered. */
export async function expectState(service: Service, known: Known): Promise<void> {
  await expectKeys(service, known);
}
