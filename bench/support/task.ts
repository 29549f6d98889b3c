/** Task for a load generator, which answers once. */
export interface Task {
  readonly concurrency: number;
  /** Time in which new jobs are started, in milliseconds. Running jobs are finished afterwards. */
  readonly forMs: number;
}

export interface Yield {
  readonly jobs: number;
  /** Time from the start of the first job to the end of the last one, in milliseconds. */
  readonly elapsedMs: number;
  /** Time of each job, in milliseconds. */
  readonly latencies: readonly number[];
}

export const prompt = 'Say in one sentence why the sky is blue.';

/** Runs `job` repeatedly, `concurrency` at a time. */
export async function perform({ concurrency, forMs }: Task, job: () => Promise<void>): Promise<Yield> {
  const latencies: number[] = [];
  const begun = performance.now();
  const lane = async () => {
    for (let from = begun; from < begun + forMs; from = performance.now()) {
      await job();
      latencies.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return { jobs: latencies.length, elapsedMs: performance.now() - begun, latencies };
}

export function perSecond({ jobs, elapsedMs }: Yield): number {
  return (jobs * 1000) / elapsedMs;
}
