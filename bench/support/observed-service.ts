import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processCounts } from '../../test/support/agents/reporting-model.js';
import { until } from '../../test/support/basics/until.js';
import { runtimeOf } from '../../test/support/jobs/jobs.js';
import {
  mainProgram,
  type Service,
  startService,
  twoWorkers,
  workerProgram,
} from '../../test/support/service/service.js';
import type { SelfReport } from './self-probe.js';
import { sum } from './statistics.js';

const steadyMs = 3000;
/** Change below which the memory counts as steady, in megabytes; or one percent, if that is more. */
const steadyMb = 2;

/** Resources of all processes of the service together, after a garbage collection. */
export interface Footprint {
  readonly heapMb: number;
  readonly externalMb: number;
  readonly rssMb: number;
  readonly fileDescriptors: number;
  readonly resources: number;
  /** Number of jobs with a slot or a place in the queue. */
  readonly jobs: number;
  /** Number of processes of the model CLI, including standby processes. */
  readonly cliProcesses: number;
}

/** Service whose processes report their resources. */
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

  /** Measures resources when only standby processes remain and `restMs` have passed since then. */
  async atRest(standby: number, restMs: number): Promise<Footprint> {
    await until(() => this.#isIdle(standby), 'the service to come to rest', 60_000);
    await sleep(restMs);
    const samples: Footprint[] = [];
    while (samples.length < 5) samples.push(await this.now());
    const least = (figure: keyof Footprint) => Math.min(...samples.map((sample) => sample[figure]));
    // A sample may coincide with a readiness check or a check of the program's file. The minimum of the samples
    // excludes these.
    const [heapMb, externalMb, rssMb] = [least('heapMb'), least('externalMb'), least('rssMb')];
    const [fileDescriptors, resources] = [least('fileDescriptors'), least('resources')];
    const [jobs, cliProcesses] = [least('jobs'), least('cliProcesses')];
    return { heapMb, externalMb, rssMb, fileDescriptors, resources, jobs, cliProcesses };
  }

  /** Measures resources after they have almost stopped growing. */
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

  /** Measures the primary alone, after a full collection, because workers may be killed at the same time. */
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
