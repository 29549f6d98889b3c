/**
 * Returns the processor time of this process in milliseconds. Tests of computations compare it with a limit: other than
 * the time on a clock, it hardly depends on what else the machine does.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
