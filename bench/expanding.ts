import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { headerOf, writeHolders } from '../test/support/clients/dripping-bodies.js';
import type { ExpandingKind } from '../test/support/clients/expanding.js';
import { jsonPost, RawConnection, request } from '../test/support/clients/raw-http.js';
import { memoryOf, workersOf } from '../test/support/processes/processes.js';
import { type Service, twoWorkers } from '../test/support/service/service.js';
import { startWatched, type WatchedService } from '../test/support/service/stalls.js';
import { dropLog } from './support/service-log.js';
import { median, quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

interface Attack {
  /** Kind of the requests; null for none. */
  readonly kind: ExpandingKind | null;
  readonly connections: number;
}

function attackBy(kind: ExpandingKind | null, connections: number): Attack {
  return { kind, connections };
}

const none = attackBy(null, 0);
const stored = [
  attackBy('reads of a stored response of 8 MB', 70),
  attackBy('lists of an input of 2 MB', 70),
  attackBy('requests that continue a text of 60 MB', 2),
  attackBy('requests that continue a text of 60 MB', 32),
  attackBy('requests that continue a text of 8 MB', 4),
  attackBy('requests with 10,000 references to a stored item', 2),
  attackBy('requests with arguments of five million lists', 2),
  attackBy('requests with arguments 5,000 levels deep', 8),
];
const uploads = [
  attackBy('forms with a million empty parts', 4),
  attackBy('forms with a million parts without headers', 4),
  attackBy('forms with 160,000 fields', 4),
  attackBy('forms with a header of 10 MB', 4),
  attackBy('forms in pieces of one byte', 8),
  attackBy('uploads that flow slowly', 100),
  attackBy('uploads that fall silent', 100),
];
const contents = [
  attackBy('requests with 20 references to a PDF that takes long to inspect', 4),
  attackBy('requests with 20 PDFs that take long to inspect', 4),
  attackBy('requests with a PDF whose page has 20 MB', 4),
  attackBy('requests with a tool of 5,500 dependencies', 4),
  attackBy('requests with 10 tools of 1,000 properties', 4),
];
const searches = [
  attackBy('searches whose result has 1 MB of text', 4),
  attackBy('searches whose result has 4,000 pages', 4),
  attackBy('searches whose result arrives in pieces of one byte', 4),
  attackBy('searches whose result never ends', 8),
  attackBy('searches whose result is 1 MB of brackets', 4),
];
const batches = [
  attackBy('batches of four million lines', 4),
  attackBy('batches of 30 MB of blank lines', 4),
  attackBy('batches of a line of 60 MB', 4),
  attackBy('batches of four lines of 15 MB', 4),
  attackBy('batches of four lines of 15 MB that are cancelled', 4),
  attackBy('batches of 2,000 lines', 4),
  attackBy('batches of 20,000 lines that are cancelled', 4),
];

/** Longest attack, in seconds. Fewer rounds are shorter attacks. */
const maxSeconds = 10;
const restMs = 50;
const patienceMs = 30_000;
const targets = { healthMs: 50, memoryMb: 1024 };

/** Returns a measurement of these attacks of one client, and of their effect on other clients. */
function measurementOf(attacks: readonly Attack[]): (rounds: number) => Promise<Row[]> {
  return async (rounds) => {
    const attackMs = Math.min(rounds, maxSeconds) * 1000;
    const rows: Row[] = [];
    for (const each of [none, ...attacks]) rows.push(await rowOf(each, attackMs));
    return rows;
  };
}

/** Groups of attacks, each of which takes up to two minutes. */
export const expanding = measurementOf(stored);
export const uploadAttacks = measurementOf(uploads);
export const contentAttacks = measurementOf(contents);
export const searchAttacks = measurementOf(searches);
export const floodAttacks = measurementOf(batches);

async function rowOf(attack: Attack, attackMs: number): Promise<Row> {
  const { kind } = attack;
  await using folder = await temporaryFolder();
  const holders = await writeHolders(folder, 'search=100000/day');
  const search = kind?.startsWith('searches') ? await startSearch() : null;
  const searchEnv = search === null ? null : { MODEL_API_SEARCH: `mcp:${search.url}#find` };
  const watched = await startWatched({ ...twoWorkers, ...holders, ...searchEnv, MODEL_API_FILES: 'memory' });
  dropLog(watched.service);
  try {
    return rowFor(attack, await under(attack, watched, attackMs));
  } finally {
    search?.program.kill();
    // After a crash, processes are left.
    await Promise.resolve(watched[Symbol.asyncDispose]()).catch(() => {});
  }
}

function rowFor({ kind, connections }: Attack, felt: Awaited<ReturnType<typeof under>>): Row {
  const { healthMs, lost, asked, largestMb, replaced, exit, stalls } = felt;
  const p99 = quantile(healthMs, 0.99);
  return {
    question: kind === null ? 'no attack' : `${connections} ${kind}`,
    target: `no exit, 0 jobs lost, 0 workers killed, p99 ≤ ${targets.healthMs} ms, ≤ ${targets.memoryMb} MB`,
    measured: [
      `exit ${exit ?? 'none'}`,
      `${lost} of ${asked} jobs of another client lost`,
      `${replaced} workers killed`,
      `/health p50 ${median(healthMs).toFixed(0)}, p99 ${p99.toFixed(0)} ms`,
      ...(stalls === null
        ? []
        : [
            `longest stop of a worker ${stalls.worker.processorMs.toFixed(0)} ms, of the primary ${stalls.primary.processorMs.toFixed(0)} ms`,
          ]),
      `largest process ${largestMb.toFixed(0)} MB`,
    ].join('; '),
    holds: exit === null && lost + replaced === 0 && p99 <= targets.healthMs && largestMb <= targets.memoryMb,
  };
}

async function startSearch() {
  const program = fork(join(__dirname, 'support', 'hostile-search.js'));
  const [url] = (await once(program, 'message')) as [string];
  return { program, url };
}

async function under({ kind, connections }: Attack, watched: WatchedService, attackMs: number) {
  const { service } = watched;
  for (let count = 0; count < 100; count++) await health(service); // compiles the code
  await job(service);
  const first = await workersOf(service.pid);
  const program = join(__dirname, 'support', 'expander.js');
  const attacker = kind === null ? null : fork(program, [service.port, kind, connections].map(String));
  if (attacker !== null) await Promise.race([once(attacker, 'message'), service.exited]);
  await watched.takeStalls();
  const end = performance.now() + attackMs;
  const isOver = () => performance.now() > end || service.process.exitCode !== null;
  const largest = largestProcess(service, isOver);
  const [health_, jobs] = await Promise.all([
    series(() => health(service), isOver),
    series(() => job(service), isOver),
  ]);
  const largestMb = await largest;
  const exit = service.process.exitCode;
  const now = exit === null ? await workersOf(service.pid) : first;
  const stalls = exit === null ? await watched.takeStalls().catch(() => null) : null;
  attacker?.kill();
  return {
    ...{ healthMs: health_.map(({ ms }) => ms), asked: jobs.length, lost: jobs.filter(({ isLost }) => isLost).length },
    ...{ largestMb, exit, stalls, replaced: first.filter((pid) => !now.includes(pid)).length },
  };
}

/** Repeats an action, one at a time, until `isOver` returns true. */
async function series(act: () => Promise<void>, isOver: () => boolean) {
  const tries: { readonly ms: number; readonly isLost: boolean }[] = [];
  for (; !isOver(); await sleep(restMs)) {
    const from = performance.now();
    const isLost = await act().then(
      () => false,
      () => true,
    );
    tries.push({ ms: performance.now() - from, isLost });
  }
  return tries;
}

async function answered(service: Service, bytes: Buffer): Promise<void> {
  using connection = await RawConnection.open(service.port);
  connection.send(bytes);
  const { status } = await connection.answer({ withinMs: patienceMs });
  if (status !== 200) throw new Error(`answered ${status}`);
}

/** Sends GET /health on a new connection each time, so that all workers answer. */
function health(service: Service): Promise<void> {
  return answered(service, request('GET /health', []));
}

function job(service: Service): Promise<void> {
  return answered(service, jsonPost('/ask', JSON.stringify({ prompt: 'hello' }), [headerOf('modest')]));
}

/** Returns the maximum memory of one process of the service, in megabytes. */
async function largestProcess(service: Service, isOver: () => boolean): Promise<number> {
  let largest = 0;
  for (; !isOver(); await sleep(restMs)) {
    const pids = [service.pid, ...(await workersOf(service.pid).catch(() => []))];
    const sizes = await Promise.all(pids.map((pid) => memoryOf(pid).catch(() => ({ bytes: 0 }))));
    largest = Math.max(largest, ...sizes.map(({ bytes }) => bytes));
  }
  return largest / 1024 ** 2;
}
