/** What a load generator is told to do; and what it answers, once. */
export interface Task {
  readonly concurrency: number;
  /** New jobs are begun for this long, milliseconds; those under way are finished. */
  readonly forMs: number;
}

export interface Yield {
  readonly jobs: number;
  /** From the first job's begin to the last one's end, milliseconds. */
  readonly elapsedMs: number;
  /** Of each job, milliseconds. */
  readonly latencies: readonly number[];
}

export const prompt = 'Say in one sentence why the sky is blue.';

/** Does `job` over and over, `concurrency` at a time. */
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
