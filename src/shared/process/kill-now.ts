/** Sends SIGKILL to one process. Returns whether it was there and is ours to kill. */
export function killNow(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
