import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { randomNumbers } from '../test/support/basics/random.js';
import { until } from '../test/support/basics/until.js';
import { everyKind, RandomFaults } from '../test/support/faults/random-faults.js';
import { type Ledger, ledgerOf, total } from '../test/support/jobs/job-ledger.js';
import { untilJobs } from '../test/support/jobs/jobs.js';
import { script } from '../test/support/service/service.js';
import { drawChart } from './support/chart.js';
import { HealthProbe } from './support/health-probe.js';
import { describeMachine } from './support/machine.js';
import { MixedTraffic } from './support/mixed-traffic.js';
import { ObservedService } from './support/observed-service.js';
import { csvOf, recordOf, type SoakRecord } from './support/soak-record.js';
import { quantile, slope } from './support/statistics.js';
import { type Row, tableHead, tableLine } from './support/table.js';

/**
 * Usage: npm run soak -- [--minutes N] [--seed N] [--csv FILE] [--json FILE] [--chart FILE]. Runs mixed traffic with a
 * fault every few seconds, for an hour by default. Exits with 1 if a guarantee is broken.
 */

const everyMs = 30_000;
/** Share of the run until caches, compiled code and sessions have reached their final size. */
const warmUpShare = 0.2;
/** Longest time before the faults begin. */
const maxWarmUpMs = 60_000;
const maxFaultPauseMs = 6000;
const patienceMs = 60_000;
/** Time that is longer than sessions and conversations exist here, and than an idle heap waits for its collection. */
const restMs = 15_000;
const maxSlopeMb = 1;
const maxHealthP99Ms = 50;

const env = {
  MODEL_API_CLI_COMMAND: script('converses.pl'),
  MODEL_API_LOG_LEVEL: 'debug',
  MODEL_API_TIMEOUT: '3',
  MODEL_API_QUEUE_TIMEOUT_MS: '2000',
  MODEL_API_KILL_GRACE_MS: '200',
  MODEL_API_MAX_CONCURRENT: '4',
  MODEL_API_STANDBY: '1',
  MODEL_API_LIVE_SESSIONS: '4',
  MODEL_API_SESSION_IDLE_SECONDS: '5',
  MODEL_API_CONVERSATION_TTL_SECONDS: '5',
};

interface Soak {
  readonly records: readonly SoakRecord[];
  readonly atRest: { readonly before: SoakRecord; readonly after: SoakRecord };
  readonly struck: RandomFaults['struck'];
  readonly ledger: Ledger;
  readonly healthP99Ms: number;
  readonly brokenProbes: number;
  readonly complaints: number;
}

async function soak(minutes: number, seed: number): Promise<Soak> {
  await using observed = await ObservedService.start(env);
  const { service } = observed;
  const probe = new HealthProbe(service.port);
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 60_000;
  const rested = async () => {
    await untilJobs(service, 0, 0, patienceMs);
    await sleep(restMs);
    await until(async () => (await service.jobProcesses()).length <= 1, 'only the process on standby', patienceMs);
    return recordOf(observed, probe, elapsed());
  };
  // The baseline includes threads and code that are started or compiled at their first use.
  const warmUp = new MixedTraffic(service, seed - 1, 'warm-up');
  await sleep(Math.min(maxWarmUpMs, (minutes * 60_000) / 5));
  await warmUp.stop();
  const before = await rested();
  const traffic = new MixedTraffic(service, seed, 'soak');
  const faults = new RandomFaults(service, everyKind, randomNumbers(seed + 1000), maxFaultPauseMs);
  const records: SoakRecord[] = [];
  for (const end = performance.now() + minutes * 60_000; performance.now() < end; ) {
    await sleep(Math.min(everyMs, end - performance.now()));
    const record = await recordOf(observed, probe, elapsed());
    records.push(record);
    process.stderr.write(`${JSON.stringify(record)}\n`);
  }
  await faults[Symbol.asyncDispose]();
  await traffic.stop();
  const healthP99Ms = quantile(probe.all, 0.99);
  const after = await rested();
  await probe.stop();
  const complaints = service.stderr.length + service.logs.filter(({ event }) => event === 'internal_error').length;
  const ledger = await ledgerOf(service, [...warmUp.fates, ...traffic.fates]);
  return {
    records,
    atRest: { before, after },
    struck: faults.struck,
    ledger,
    healthP99Ms,
    brokenProbes: probe.broken,
    complaints,
  };
}

function rowsOf({ records, atRest, ledger, healthP99Ms, brokenProbes, complaints }: Soak): Row[] {
  const { before, after } = atRest;
  const warm = records.filter((_, index) => index >= Math.floor(records.length * warmUpShare));
  const growth =
    10 *
    slope(
      warm.map(({ minutes }) => minutes),
      warm.map(({ heapMb }) => heapMb),
    );
  const { counted, logged, clients, faults } = ledger;
  const zombies = Math.max(...[...records, after].map((record) => record.zombies));
  return [
    {
      question: 'Admitted jobs and their ends',
      target: 'one end each; log, metrics and clients agree',
      measured: `metrics ${total(counted)}, log ${total(logged)}, clients ${clients.admitted} and ${clients.unknown} broken before a word; ${faults.length} disagree`,
      holds: faults.length === 0 && total(counted) === total(logged),
    },
    {
      question: 'Heap of the primary, by linear regression after the warm-up',
      target: `< ${maxSlopeMb} MB per 10 minutes`,
      measured: `${growth.toFixed(2)} MB per 10 minutes; at rest ${before.heapMb.toFixed(1)} → ${after.heapMb.toFixed(1)} MB`,
      holds: growth < maxSlopeMb,
    },
    {
      question: 'Descriptors of the primary at rest, before and after',
      target: 'back to base',
      measured: `${before.fileDescriptors} → ${after.fileDescriptors}`,
      holds: after.fileDescriptors <= before.fileDescriptors,
    },
    {
      question: 'Processes of jobs at rest, beside the one on standby; zombies at any time',
      target: '0; 0',
      measured: `${Math.max(after.processes - 1, 0)}; ${zombies}`,
      holds: after.processes <= 1 && after.zombies === 0,
    },
    {
      question: 'GET /health meanwhile, p99',
      target: `< ${maxHealthP99Ms} ms`,
      measured: `${healthP99Ms.toFixed(1)} ms; ${brokenProbes} connections broke with their workers`,
      holds: healthP99Ms < maxHealthP99Ms,
    },
    {
      question: 'Warnings and errors of our own; workers replaced',
      target: '0; –',
      measured: `${complaints}; ${after.workerRestarts}`,
      holds: complaints === 0,
    },
  ];
}

function chartOf(title: string, records: readonly SoakRecord[]): string {
  const values = (name: keyof SoakRecord) => ({ name, values: records.map((record) => record[name]) });
  const perMinute = records.map((record, index) => {
    const last = records[index - 1] ?? { minutes: 0, jobsEnded: 0 };
    return (record.jobsEnded - last.jobsEnded) / (record.minutes - last.minutes);
  });
  return drawChart(
    title,
    records.map(({ minutes }) => minutes),
    [
      { title: 'Jobs ended, a minute', series: [{ name: 'jobs', values: perMinute }] },
      { title: 'Memory of the primary, MB', series: [values('heapMb'), values('rssMb')] },
      { title: 'GET /health, ms', series: [values('healthP50Ms'), values('healthP99Ms')] },
      {
        title: 'Descriptors, processes, zombies',
        series: [values('fileDescriptors'), values('processes'), values('zombies')],
      },
      { title: 'Workers replaced', series: [values('workerRestarts')] },
    ],
  );
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ options: { minutes: text, seed: text, csv: text, json: text, chart: text } });
  const [minutes, seed] = [Number(values.minutes ?? 60), Number(values.seed ?? 20_240_801)];
  const machine = describeMachine();
  const result = await soak(minutes, seed);
  const rows = rowsOf(result);
  const faults = Object.entries(result.struck).map(([kind, count]) => `${kind} ${count}`);
  const title = `${minutes} minutes of mixed traffic with faults (seed ${seed}: ${faults.join(', ')})`;
  if (values.csv !== undefined) await writeFile(values.csv, csvOf(result.records));
  if (values.json !== undefined)
    await writeFile(values.json, `${JSON.stringify({ machine, title, rows, ...result }, null, 1)}\n`);
  if (values.chart !== undefined)
    await writeFile(values.chart, chartOf(`Soak: ${minutes} minutes with a fault every 3 s`, result.records));
  for (const fault of result.ledger.faults.slice(0, 20)) process.stderr.write(`${fault}\n`);
  process.stdout.write(`${machine}\n${title}\n\n${[tableHead, ...rows.map(tableLine)].join('\n')}\n`);
  process.exitCode = rows.every(({ holds }) => holds !== false) ? 0 : 1;
}

void main();
