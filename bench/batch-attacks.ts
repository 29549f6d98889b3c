import { until } from '../test/support/basics/until.js';
import { promptLine, upload } from '../test/support/clients/batches.js';
import { headersOf, writeNamedKeys } from '../test/support/doors/named-keys.js';
import { workersOf } from '../test/support/processes/processes.js';
import { type Service, twoWorkers } from '../test/support/service/service.js';
import { startWatched } from '../test/support/service/stalls.js';
import { HealthProbe } from './support/health-probe.js';
import { memoryOf } from './support/memory-of.js';
import { dropLog } from './support/service-log.js';
import { quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const mib = 1024 * 1024;
const sampleMs = 100;
const limitMs = 60_000;
const [alice, bob] = [headersOf('alice'), headersOf('bob')];
const target = '/health p99 ≤ 50 ms, the batch of another client ≤ 5 s';

interface Attack {
  readonly name: string;
  /** Pieces of the file of the batch. */
  readonly file: () => string[];
  readonly isCancelled?: true;
}

const longLine = (id: string, bytes: number) => promptLine(id, 'x'.repeat(bytes));
const longLines = () => Array.from({ length: 16 }, (_, index) => `${longLine(`l${index}`, 15 * mib)}\n`);

const attacks: readonly Attack[] = [
  { name: 'A batch of 16 lines of 15 MiB', file: longLines },
  { name: 'A batch of 16 lines of 15 MiB, which is cancelled at once', file: longLines, isCancelled: true },
  { name: 'A batch of a line of 200 MiB', file: () => [...Array(200)].map(() => 'x'.repeat(mib)) },
  {
    name: 'A batch of 100 MiB of blank lines',
    file: () => [...[...Array(100)].map(() => '\n'.repeat(mib)), promptLine('a', 'b')],
  },
  {
    name: 'A batch of 10 million lines, which is refused',
    file: () => [...Array(20)].map(() => 'x\n'.repeat(mib / 2)),
  },
];

/** Measures batches of one client, and their effect on those of another one. */
export async function batchAttacks(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const attack of attacks) rows.push(await rowOf(attack));
  return rows;
}

async function rowOf(attack: Attack): Promise<Row> {
  await using keys = await writeNamedKeys();
  await using watched = await startWatched({ ...twoWorkers, ...keys.env, MODEL_API_FILES: 'memory' });
  const { service } = watched;
  dropLog(service);
  const parts = attack.file();
  const { body } = await upload(service, new Blob(parts), { purpose: 'batch' }, alice);
  await watched.takeStalls();
  const first = await workersOf(service.pid);
  const memory = new PeakMemory(service);
  const probe = new HealthProbe(Number(new URL(service.url).port));
  const began = performance.now();
  const created = create(service, body.id, alice);
  const otherMs = await otherBatch(service);
  const { body: made, status } = await created;
  const createdMs = performance.now() - began;
  if (status === 200 && attack.isCancelled === true) await service.post(`/v1/batches/${made.id}/cancel`, '', alice);
  const ended = status === 200 ? await endOf(service, made.id, alice) : null;
  const endedMs = performance.now() - began;
  await probe.stop();
  const peakMb = await memory.stop();
  const stalls = await watched.takeStalls();
  const replaced = missingFrom(await workersOf(service.pid), first);
  const p99 = quantile(probe.all, 0.99);
  return {
    question: attack.name,
    target,
    measured: [
      `/health p99 ${p99.toFixed(0)} ms, longest ${Math.max(...probe.all).toFixed(0)} ms`,
      `the other batch ended after ${(otherMs / 1000).toFixed(1)} s`,
      `answer ${status} after ${(createdMs / 1000).toFixed(1)} s`,
      ended === null ? '' : `${ended} after ${(endedMs / 1000).toFixed(1)} s`,
      `longest stop of a worker ${stalls.worker.processorMs.toFixed(0)} ms, of the primary ${stalls.primary.processorMs.toFixed(0)} ms`,
      `${replaced} workers killed`,
      `largest process ${peakMb.toFixed(0)} MB`,
    ]
      .filter((part) => part !== '')
      .join('; '),
    holds: p99 <= 50 && otherMs <= 5000 && replaced === 0,
  };
}

function create(service: Service, file: unknown, headers: Readonly<Record<string, string>>) {
  const order = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' };
  return service.post('/v1/batches', order, headers);
}

/** Returns the time that a small batch of another client takes to its end. */
async function otherBatch(service: Service): Promise<number> {
  const began = performance.now();
  const { body: file } = await upload(service, promptLine('small', 'Hello'), { purpose: 'batch' }, bob);
  const { body } = await create(service, file.id, bob);
  await endOf(service, body.id, bob);
  return performance.now() - began;
}

async function endOf(service: Service, id: unknown, headers: Readonly<Record<string, string>>): Promise<string> {
  const find = async () => String((await service.get(`/v1/batches/${id}`, headers)).body.status);
  const isOver = (status: string) => ['completed', 'cancelled', 'failed', 'expired'].includes(status);
  const ended = await until(
    async () => {
      const status = await find();
      return isOver(status) ? status : null;
    },
    'the end of a batch',
    limitMs,
  ).catch(() => 'not ended');
  return ended;
}

function missingFrom(now: readonly number[], first: readonly number[]): number {
  return first.filter((pid) => !now.includes(pid)).length;
}

/** Owns the largest memory of one process of the service that was seen. */
class PeakMemory {
  #peakMb = 0;
  readonly #timer: NodeJS.Timeout;
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
    this.#timer = setInterval(() => void this.#look(), sampleMs);
  }

  async stop(): Promise<number> {
    clearInterval(this.#timer);
    await this.#look();
    return this.#peakMb;
  }

  async #look(): Promise<void> {
    const pids = [this.#service.pid, ...(await workersOf(this.#service.pid))];
    const sizes = await Promise.all(pids.map((pid) => memoryOf(pid).catch(() => ({ rssMb: 0 }))));
    this.#peakMb = Math.max(this.#peakMb, ...sizes.map(({ rssMb }) => rssMb));
  }
}
