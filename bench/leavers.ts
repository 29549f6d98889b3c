import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { randomNumbers } from '../test/support/basics/random.js';
import type { Service } from '../test/support/service/service.js';
import { script } from '../test/support/service/service.js';
import { Leaver } from './support/leaver.js';
import { describeMachine } from './support/machine.js';
import { type Footprint, ObservedService } from './support/observed-service.js';
import { readSlowly, type SlowReader } from './support/slow-reader.js';
import { quantile } from './support/statistics.js';
import { type Row, tableHead, tableLine } from './support/table.js';

/**
 * Usage: npm run soak:leavers -- [--disconnects N] [--readers N] [--without-files]. Prints the remaining resources
 * after many disconnects, and the cost of slow readers. 0 skips a part. `--without-files` also measures slow readers
 * while no answer can be written to a file.
 */

const leavers = 48;
const longestMs = 250;
/** Time that is longer than live sessions and conversations exist here, and than the store needs to expire them. */
const restMs = 18_000;
/** Launches with a standby process: the default one, and one for each model by its name. */
const warmLaunches = 3;
const seed = 20_240_615;

async function disconnects(count: number): Promise<Row[]> {
  await using observed = await ObservedService.start({
    MODEL_API_STANDBY: '1',
    MODEL_API_SESSION_IDLE_SECONDS: '2',
    MODEL_API_CONVERSATION_TTL_SECONDS: '2',
  });
  const { service } = observed;
  await leaveOften(service, Math.ceil(count / 2), seed);
  const before = await observed.atRest(warmLaunches, restMs);
  const startedMs = performance.now();
  await leaveOften(service, count, seed + 1);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  const after = await observed.atRest(warmLaunches, restMs);
  const complaints = service.stderr.length + service.logs.filter(({ event }) => event === 'internal_error').length;
  return [
    whatIsLeft(`${count} disconnects in ${seconds} s`, before, after),
    memoryLeft(before, after),
    {
      question: 'Warnings and errors of our own meanwhile',
      target: '0',
      measured: `${complaints}`,
      holds: complaints === 0,
    },
  ];
}

/** Disconnects until the service has counted `count` requests whose client disconnected before the answer. */
async function leaveOften(service: Service, count: number, firstSeed: number): Promise<void> {
  const left = () => service.logs.reduce((sum, { status_code }) => sum + (status_code === 499 ? 1 : 0), 0);
  const goal = left() + count;
  const leave = async (index: number) => {
    const leaver = new Leaver(service.port, randomNumbers(firstSeed + 1000 * index), longestMs);
    while (left() < goal) await leaver.askAndLeave();
  };
  await Promise.all(Array.from({ length: leavers }, (_, index) => leave(index)));
}

function whatIsLeft(when: string, before: Footprint, after: Footprint): Row {
  const more = {
    slots: after.jobs - before.jobs,
    processes: after.cliProcesses - before.cliProcesses,
    handles: after.resources - before.resources,
    'file descriptors': after.fileDescriptors - before.fileDescriptors,
  };
  const measured = Object.entries(more).map(([name, count]) => `${count} ${name}`);
  return {
    question: `Left over after ${when}, beside what was there before`,
    target: '0',
    measured: measured.join(', '),
    holds: Object.values(more).every((count) => count <= 0),
  };
}

function memoryLeft(before: Footprint, after: Footprint): Row {
  const rss = after.rssMb - before.rssMb;
  const heap = after.heapMb + after.externalMb - before.heapMb - before.externalMb;
  const figures = `RSS ${before.rssMb.toFixed(1)} → ${after.rssMb.toFixed(1)} MB (${signed(rss)})`;
  return {
    question: 'Memory of all service processes, before and after, garbage collected',
    target: '≤ +10 MB',
    measured: `${figures}; heap and buffers ${signed(heap)}`,
    holds: rss <= 10,
  };
}

function signed(megabytes: number): string {
  return `${megabytes < 0 ? '−' : '+'}${Math.abs(megabytes).toFixed(1)} MB`;
}

const answerBytes = 10 * 1024 * 1024;
const targetGrowthMb = 64;
const sampleMs = 6000;

/** Measures slow readers. Half of them read nothing, half read a little from time to time. */
async function slowReaders(count: number, slots: number, env: Readonly<Record<string, string>> = {}): Promise<Row> {
  await using observed = await ObservedService.start({
    MODEL_API_CLI_COMMAND: script('converses.pl'),
    MODEL_API_MAX_CONCURRENT: String(slots),
    MODEL_API_MAX_QUEUE: String(count),
    MODEL_API_QUEUE_TIMEOUT_MS: '120000',
    MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes),
    MODEL_API_STANDBY: '0',
    ...env,
  });
  const { service } = observed;
  await healthP99(service);
  const aloneMs = await healthP99(service);
  const before = await observed.now();
  const readers: SlowReader[] = Array.from({ length: count }, (_, index) => {
    return readSlowly(service.port, { prompt: `big ${answerBytes}`, stream: true }, index % 2 === 0);
  });
  const during = await observed.whenSteady();
  const besideMs = await healthP99(service);
  const readMb = readers.reduce((sum, { bytes }) => sum + bytes, 0) / 1024 ** 2;
  for (const { leave } of readers) leave();
  const growth = during.rssMb - before.rssMb;
  const held = during.heapMb + during.externalMb - before.heapMb - before.externalMb;
  const latency = `GET /health p99 ${aloneMs.toFixed(1)} → ${besideMs.toFixed(1)} ms`;
  return {
    question: `Memory that ${count} slow readers of a 10 MB answer cost, at ${slots} slots${env.TMPDIR === undefined ? '' : ', held in memory'}`,
    target: `< ${targetGrowthMb} MB`,
    measured: `RSS ${signed(growth)}, of it held ${signed(held)}; they had read ${readMb.toFixed(0)} MB; ${latency}`,
    holds: growth < targetGrowthMb,
  };
}

async function healthP99(service: Service): Promise<number> {
  const latencies: number[] = [];
  for (const end = performance.now() + sampleMs; performance.now() < end; await sleep(5)) {
    const from = performance.now();
    await service.get('/health');
    latencies.push(performance.now() - from);
  }
  return quantile(latencies, 0.99);
}

/** Measures slow readers while the service has a folder for jobs, but none for long answers. */
async function slowReadersWithoutFiles(count: number): Promise<Row> {
  await using folder = await temporaryFolder();
  const missing = join(folder.path, 'missing');
  return await slowReaders(count, count, { RUNTIME_DIRECTORY: folder.path, TMPDIR: missing });
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { disconnects: { type: 'string' }, readers: { type: 'string' }, 'without-files': { type: 'boolean' } },
  });
  const readers = Number(values.readers ?? 200);
  const count = Number(values.disconnects ?? 10_000);
  const print = (row: Row) => process.stdout.write(`${tableLine(row)}\n`);
  process.stdout.write(`${describeMachine()}\n\n${tableHead}\n`);
  if (count > 0) for (const row of await disconnects(count)) print(row);
  for (const slots of [4, readers]) print(await slowReaders(readers, slots));
  if (values['without-files']) print(await slowReadersWithoutFiles(readers));
}

void main();
