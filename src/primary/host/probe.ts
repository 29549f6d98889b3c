import { spawn } from 'node:child_process';

/** Whether the program can be started and says within the limit that all went well. Never rejects. */
export function endsWell(program: string, args: readonly string[], limitMs: number): Promise<boolean> {
  const ended = new Promise<boolean>((resolve) => {
    spawn(program, args, { env: {}, stdio: 'ignore', timeout: limitMs, killSignal: 'SIGKILL' })
      .once('error', () => resolve(false))
      .once('exit', (code) => resolve(code === 0));
  });
  return ended.catch(() => false);
}
