import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';

/** Describes date, machine and current load in one line. Must be called before any measurement. */
export function describeMachine(): string {
  const cores = availableParallelism();
  const memory = (totalmem() / 1024 ** 3).toFixed(1);
  const load = loadavg()
    .map((value) => value.toFixed(2))
    .join(' ');
  return [
    new Date().toISOString().slice(0, 10),
    `${cores} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`,
    `${memory} GiB`,
    `${type()} ${release().split('-')[0]}`,
    `Node ${process.version}`,
    `load average at the start ${load}`,
  ].join(' · ');
}

/**
 * Returns a warning if the machine is busy. Then more processes get more processor time, and the relay has more than a
 * bare loop, so the ratios look too good.
 */
export function busyWarning(): string {
  const isBusy = (loadavg()[0] ?? 0) > availableParallelism() / 2;
  return isBusy
    ? 'The machine was busy: jobs per second and latencies say little, compare the processor time.\n\n'
    : '';
}
