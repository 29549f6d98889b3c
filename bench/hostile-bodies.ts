import { fork } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { headerOf, writeHolders } from '../test/support/clients/dripping-bodies.js';
import { jsonPost, RawConnection } from '../test/support/clients/raw-http.js';
import { memoryOf, workersOf } from '../test/support/processes/processes.js';
import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import { median, quantile, sum } from './support/statistics.js';
import type { Row } from './support/table.js';

interface Attack {
  readonly kind: string;
  readonly connections: number;
  readonly name: string;
}

const attacks: readonly Attack[] = [
  { kind: 'none', connections: 0, name: 'hostile bodies' },
  ...[4, 32].flatMap((connections) => [
    { kind: 'levels', connections, name: 'bodies of 16 MB of `[[[`' },
    { kind: 'lists', connections, name: 'bodies of 16 MB of `[[],[],`' },
    { kind: 'fields', connections, name: 'bodies of 16 MB of `{"0":0,`' },
  ]),
  { kind: 'drips', connections: 32, name: 'bodies that stop after 14 MB and drip' },
  { kind: 'unfinished', connections: 32, name: 'bodies of 16 MB without their last byte, again and again' },
  { kind: 'pieces', connections: 8, name: 'bodies in pieces of one byte' },
  { kind: 'legal', connections: 4, name: 'jobs with a prompt of 16 MB, again and again' },
];

/** Duration of an attack, longer than the time after which an unresponsive worker is killed. */
const attackMs = 20_000;
const restMs = 50;
/** Time after which a waiting client disconnects. */
const patienceMs = 30_000;
const promptBytes = 20_000;
const targets = { healthMs: 50, promptMs: 1000, memoryMb: 1024 };

/** Measures hostile bodies, and their effect on another client. */
export async function hostileBodies(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const attack of attacks) rows.push(await rowOf(attack));
  return rows;
}

async function rowOf(attack: Attack): Promise<Row> {
  await using folder = await temporaryFolder();
  await using service = await startService({ env: { ...twoWorkers, ...(await writeHolders(folder)) } });
  dropLog(service);
  const { health, prompts, peakMb, replaced } = await under(attack, service);
  const [p99, longest] = [quantile(health, 0.99), Math.max(...prompts)];
  const isLegal = attack.kind === 'legal';
  return {
    question: `${attack.connections} ${attack.name}`,
    target: isLegal
      ? '–'
      : `p99 ≤ ${targets.healthMs} ms, prompt ≤ ${targets.promptMs} ms, ≤ ${targets.memoryMb} MB, 0 workers`,
    measured: [
      `/health p50 ${median(health).toFixed(1)}, p99 ${p99.toFixed(0)} ms`,
      `20 KB of another client ${median(prompts).toFixed(0)} ms, longest ${longest.toFixed(0)} ms`,
      `both workers ${peakMb.toFixed(0)} MB`,
      `${replaced} workers killed`,
    ].join('; '),
    holds: isLegal
      ? null
      : p99 <= targets.healthMs && longest <= targets.promptMs && peakMb <= targets.memoryMb && replaced === 0,
  };
}

interface Felt {
  readonly health: readonly number[];
  readonly prompts: readonly number[];
  readonly peakMb: number;
  readonly replaced: number;
}

async function under({ kind, connections }: Attack, service: Service): Promise<Felt> {
  for (let count = 0; count < 200; count++) await timed(() => health(service)); // compiles the code
  await prompt(service);
  const first = await workersOf(service.pid);
  const attacker = fork(join(__dirname, 'support', 'attacker.js'), [service.port, kind, connections].map(String));
  await once(attacker, 'message');
  await sleep(1000);
  const end = performance.now() + attackMs;
  const isOver = () => performance.now() > end;
  const memory = peakMemory(service, isOver);
  const [healthMs, promptMs] = await Promise.all([
    series(() => health(service), isOver),
    series(() => prompt(service), isOver),
  ]);
  const peakMb = await memory;
  attacker.kill();
  await once(attacker, 'exit');
  return { health: healthMs, prompts: promptMs, peakMb, replaced: await missing(service, first) };
}

/** Repeats an action, one at a time. A failed one, whose worker was killed, also counts with its time. */
async function series(act: () => Promise<void>, isOver: () => boolean): Promise<number[]> {
  const times: number[] = [];
  for (; !isOver(); await sleep(restMs)) times.push(await timed(act));
  return times;
}

async function timed(act: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await act().catch(() => {});
  return performance.now() - from;
}

/** Sends GET /health on a new connection each time, so that all workers answer. */
function health({ port }: Service): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/health', agent: false, timeout: patienceMs }, (response) => {
      response.resume().once('end', resolve).once('error', reject);
    })
      .once('error', reject)
      .once('timeout', () => reject(new Error('no answer')));
  });
}

/** Sends a prompt that the service reads and checks, but refuses: a job would wait for the jobs of the attack. */
async function prompt({ port }: Service): Promise<void> {
  using connection = await RawConnection.open(port);
  const body = JSON.stringify({ prompt: 'x'.repeat(promptBytes), nothing: true });
  connection.send(jsonPost('/ask', body, [headerOf('modest')]));
  await connection.answer({ withinMs: patienceMs });
}

/** Returns the maximum memory of all workers together. */
async function peakMemory(service: Service, isOver: () => boolean): Promise<number> {
  let peak = 0;
  for (; !isOver(); await sleep(restMs)) {
    const memories = (await workersOf(service.pid)).map((pid) => memoryOf(pid).catch(() => ({ bytes: 0 })));
    peak = Math.max(peak, sum((await Promise.all(memories)).map(({ bytes }) => bytes)));
  }
  return peak / 1024 ** 2;
}

/** Returns how many of these workers were killed. */
async function missing(service: Service, first: readonly number[]): Promise<number> {
  const now = await workersOf(service.pid);
  return first.filter((pid) => !now.includes(pid)).length;
}
