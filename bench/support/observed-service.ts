import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processCounts } from '../../test/support/converser.js';
import { runtimeOf } from '../../test/support/jobs.js';
import { mainProgram, type Service, startService, twoWorkers } from '../../test/support/service.js';
import { until } from '../../test/support/until.js';
import type { SelfReport } from './self-probe.js';
import { sum } from './statistics.js';

const workerProgram = join(__dirname, '..', '..', 'src', 'worker', 'main.js');

const steadyMs = 3000;
/** Or one percent of all, where that is more. */
const steadyMb = 2;

/** All processes of the service together, garbage collected. */
export interface Footprint {
  readonly heapMb: number;
  readonly externalMb: number;
  readonly rssMb: number;
  readonly fileDescriptors: number;
  readonly resources: number;
  /** Slots and places in the queue that are taken. */
  readonly jobs: number;
  /** Processes of the model CLI, those on standby included. */
  readonly cliProcesses: number;
}

/** A service whose processes can be asked what they hold. */
export class ObservedService implements AsyncDisposable {
  readonly service: Service;
  readonly #folder: string;

  static async start(env: Readonly<Record<string, string>>): Promise<ObservedService> {
    const folder = await mkdtemp(join(tmpdir(), 'prompt-relay-soak-'));
    const probe = {
      NODE_OPTIONS: `--require "${join(__dirname, 'self-probe.js')}"`,
      BENCH_SELF_PROBE_FILE: join(folder, 'reports'),
      BENCH_SELF_PROBE_PROGRAMS: `${mainProgram}:${workerProgram}`,
    };
    return new ObservedService(await startService({ env: { ...twoWorkers, ...probe, ...env } }), folder);
  }

  private constructor(service: Service, folder: string) {
    this.service = service;
    this.#folder = folder;
  }

  /** What is held once nothing runs and nothing but the standby waits, and `restMs` have passed. */
  async atRest(standby: number, restMs: number): Promise<Footprint> {
    await until(() => this.#isIdle(standby), 'the service to come to rest', 60_000);
    await sleep(restMs);
    const samples: Footprint[] = [];
    while (samples.length < 5) samples.push(await this.now());
    const least = (figure: keyof Footprint) => Math.min(...samples.map((sample) => sample[figure]));
    // A sample may fall on a readiness check or a look at the program's file; what stays is in all of them.
    const [heapMb, externalMb, rssMb] = [least('heapMb'), least('externalMb'), least('rssMb')];
    const [fileDescriptors, resources] = [least('fileDescriptors'), least('resources')];
    const [jobs, cliProcesses] = [least('jobs'), least('cliProcesses')];
    return { heapMb, externalMb, rssMb, fileDescriptors, resources, jobs, cliProcesses };
  }

  /** What is held once it hardly grows any more. */
  async whenSteady(): Promise<Footprint> {
    let last = await this.now();
    const isSteady = async () => {
      await sleep(steadyMs);
      const [before, now] = [last, await this.now()];
      last = now;
      return Math.abs(now.rssMb - before.rssMb) < Math.max(steadyMb, now.rssMb / 100);
    };
    await until(isSteady, 'the memory to be steady', 240_000);
    return last;
  }

  async now(): Promise<Footprint> {
    const pids = [this.service.pid, ...(await this.service.workers())];
    const known = (await this.#reports()).length;
    for (const pid of pids) process.kill(pid, 'SIGUSR2');
    const reports = await until(async () => {
      const fresh = (await this.#reports()).slice(known);
      return fresh.length === pids.length ? fresh : null;
    }, 'the probes to answer');
    const { active_requests, queued_requests } = await runtimeOf(this.service);
    const total = (figure: (report: SelfReport) => number) => sum(reports.map(figure));
    return {
      heapMb: total(({ heapBytes }) => heapBytes) / 1024 ** 2,
      externalMb: total(({ externalBytes }) => externalBytes) / 1024 ** 2,
      rssMb: total(({ rssBytes }) => rssBytes) / 1024 ** 2,
      fileDescriptors: total(({ fileDescriptors }) => fileDescriptors),
      resources: total(({ resources }) => resources),
      jobs: active_requests + queued_requests,
      cliProcesses: (await this.service.jobProcesses()).length,
    };
  }

  /** The primary alone, after a full collection: workers may be killed meanwhile. */
  async primary(): Promise<SelfReport> {
    const own = (report: SelfReport) => report.pid === this.service.pid;
    const known = (await this.#reports()).filter(own).length;
    this.service.process.kill('SIGUSR2');
    return until(async () => (await this.#reports()).filter(own)[known], 'the probe to answer');
  }

  async #isIdle(standby: number): Promise<boolean> {
    const { active_requests, queued_requests } = await runtimeOf(this.service);
    const counts = await processCounts(this.service);
    const isQuiet = active_requests + queued_requests + counts.live + counts.busy + counts.stopping === 0;
    return isQuiet && counts.standby === standby;
  }

  async #reports(): Promise<SelfReport[]> {
    const text = await readFile(join(this.#folder, 'reports'), 'utf8').catch(() => '');
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as SelfReport);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
