import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';

/** One line: when, on what, and how busy it was already. Call it before anything is measured. */
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

/** On a busy machine more processes get more of it, and the relay has more than a bare loop: its ratios look too good. */
export function busyWarning(): string {
  const isBusy = (loadavg()[0] ?? 0) > availableParallelism() / 2;
  return isBusy
    ? 'The machine was busy: jobs per second and latencies say little, compare the processor time.\n\n'
    : '';
}
