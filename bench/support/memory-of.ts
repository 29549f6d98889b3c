import { readFile } from 'node:fs/promises';

export interface Memory {
  /** Resident pages, megabytes: those shared with other processes count in every one. */
  readonly rssMb: number;
  /** The same, each shared page divided by the number of those who share it. */
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
