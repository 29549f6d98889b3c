import { readFile } from 'node:fs/promises';

export interface Memory {
  /** Resident pages in megabytes. Shared pages count in every process. */
  readonly rssMb: number;
  /** Resident pages in megabytes, with shared pages divided by the number of their processes. */
  readonly pssMb: number;
}

export async function memoryOf(pid: number): Promise<Memory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return { rssMb: megabytes(rollup, /^Rss:\s+(\d+) kB/m), pssMb: megabytes(rollup, /^Pss:\s+(\d+) kB/m) };
}

function megabytes(text: string, line: RegExp): number {
  const kilobytes = line.exec(text)?.[1];
  if (kilobytes === undefined) throw new Error('this kernel does not tell how much memory a process has');
  return Number(kilobytes) / 1024;
}
