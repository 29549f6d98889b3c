import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { headerOf, writeHolders } from '../test/support/clients/dripping-bodies.js';
import type { ExpandingKind } from '../test/support/clients/expanding.js';
import { jsonPost, RawConnection, request } from '../test/support/clients/raw-http.js';
import { memoryOf, workersOf } from '../test/support/processes/processes.js';
import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import { quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const attacks: readonly (readonly [kind: ExpandingKind | null, connections: number])[] = [
  [null, 0],
  ['reads of a stored response of 8 MB', 70],
  ['lists of an input of 2 MB', 70],
  ['requests that continue a text of 60 MB', 2],
  ['requests that continue a text of 60 MB', 32],
  ['requests that continue a text of 8 MB', 4],
  ['requests with 10,000 references to a stored item', 2],
  ['requests with arguments of five million lists', 2],
  ['requests with arguments 5,000 levels deep', 8],
];

const attackMs = 10_000;
const restMs = 50;
const patienceMs = 30_000;
const targets = { healthMs: 50, memoryMb: 1024 };

/** Measures small requests that could expand in the service, and their effect on other clients. */
export async function expanding(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [kind, connections] of attacks) rows.push(await rowOf(kind, connections));
  return rows;
}

async function rowOf(kind: ExpandingKind | null, connections: number): Promise<Row> {
  await using folder = await temporaryFolder();
  const service = await startService({ env: { ...twoWorkers, ...(await writeHolders(folder)) } });
  dropLog(service);
  const { healthMs, lost, asked, largestMb, replaced, exit } = await under(kind, connections, service);
  const p99 = quantile(healthMs, 0.99);
  const ending = exit === null ? 'none' : String(exit);
  return {
    question: kind === null ? 'no attack' : `${connections} ${kind}`,
    target: `no exit, 0 jobs lost, 0 workers killed, p99 ≤ ${targets.healthMs} ms, ≤ ${targets.memoryMb} MB`,
    measured: [
      `exit ${ending}`,
      `${lost} of ${asked} jobs of another client lost`,
      `${replaced} workers killed`,
      `/health p99 ${p99.toFixed(0)} ms`,
      `largest process ${largestMb.toFixed(0)} MB`,
    ].join('; '),
    holds: exit === null && lost + replaced === 0 && p99 <= targets.healthMs && largestMb <= targets.memoryMb,
  };
}

async function under(kind: ExpandingKind | null, connections: number, service: Service) {
  for (let count = 0; count < 100; count++) await health(service); // compiles the code
  await job(service);
  const first = await workersOf(service.pid);
  const program = join(__dirname, 'support', 'expander.js');
  const attacker = kind === null ? null : fork(program, [service.port, kind, connections].map(String));
  if (attacker !== null) await Promise.race([once(attacker, 'message'), service.exited]);
  const end = performance.now() + attackMs;
  const isOver = () => performance.now() > end || service.process.exitCode !== null;
  const largest = largestProcess(service, isOver);
  const [health_, jobs] = await Promise.all([
    series(() => health(service), isOver),
    series(() => job(service), isOver),
  ]);
  const largestMb = await largest;
  attacker?.kill();
  const exit = service.process.exitCode;
  const now = exit === null ? await workersOf(service.pid) : first;
  await service.stop().catch(() => {});
  return {
    ...{ healthMs: health_.map(({ ms }) => ms), asked: jobs.length, lost: jobs.filter(({ isLost }) => isLost).length },
    ...{ largestMb, exit, replaced: first.filter((pid) => !now.includes(pid)).length },
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
