import type { NumerousParts } from './numerous-parts.js';
import { translate } from './translation.js';

/** Growth of the work for a body with its number of parts. */
export interface Growth {
  /** Processor times for a quarter, a half and all of the parts, in milliseconds. */
  readonly ms: readonly [quarter: number, half: number, whole: number];
  /** Exponent of the growth: 1 if the time doubles with the number of parts, 2 if it quadruples. */
  readonly slope: number;
  /** Length of the job's request, divided by that of the body; 0 for a refused body. */
  readonly factor: number;
}

/** Time that is added to each measurement, because the noise of shorter ones would count. */
const noiseMs = 5;
const maxAttempts = 4;

/** Measures the growth up to this number of parts. Repeats the measurement while the slope is above the limit. */
export async function growthOf({ path, make }: NumerousParts, most: number, maxSlope: number): Promise<Growth> {
  const bodies = [most / 4, most / 2, most].map((count) => textOf(make(count)));
  const best = [Infinity, Infinity, Infinity] as [number, number, number];
  let slope = Infinity;
  let length = 0;
  for (let attempt = 0; attempt < maxAttempts && slope > maxSlope; attempt++) {
    for (const [index, body] of bodies.entries()) {
      const work = async () => {
        length = await translate(path, body);
      };
      best[index] = Math.min(best[index] ?? Infinity, await processorMs(work));
    }
    slope = Math.log2((best[2] + noiseMs) / (best[0] + noiseMs)) / 2;
  }
  return { ms: best, slope, factor: length / (bodies.at(-1)?.length ?? 1) };
}

function textOf(body: object | string): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}

async function processorMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
