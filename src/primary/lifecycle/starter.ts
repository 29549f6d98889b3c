import { readFile } from 'node:fs/promises';
import { isatty } from 'node:tty';
import type { Clock } from '../../shared/clock.js';
import type { Environment } from '../../shared/config/config.js';

/** File descriptors of the standard streams. */
const streams = [0, 1, 2];
const lookMs = 1000;
/** Wait after SIGHUP for the terminal to close: a shell sends SIGHUP before it exits. */
const hangUpMs = 1500;

/** Whether any standard stream is an open terminal. */
export function hasTerminal(): boolean {
  return streams.some((fd) => isatty(fd));
}

/** Possible reactions to SIGHUP. */
export interface HangUpActions {
  reload(): void;
  end(): void;
}

/**
 * Returns the handler of SIGHUP, which requests a reload, but is also sent when a terminal closes. A service that was
 * started in a terminal and has no terminal left ends. With `nohup`, it never had a terminal.
 */
export function hangUpHandler(clock: Clock, isAtTerminal: () => boolean, actions: HangUpActions): () => void {
  const wasAtTerminal = isAtTerminal();
  const hasLostIt = () => wasAtTerminal && !isAtTerminal();
  return () => {
    if (hasLostIt()) return actions.end();
    actions.reload();
    if (wasAtTerminal) clock.after(hangUpMs, () => hasLostIt() && actions.end());
  };
}

/** Returns an identifier of the parent, including the grandparent if the parent is a shell started by npm. */
export type ReadAncestors = () => Promise<string>;

/**
 * Whether npm started the service and waits for it, as `npx prompt-relay serve` and `npm start` do. Ending npm must
 * then end the service.
 */
export function isStartedByNpm(env: Environment): boolean {
  return ['exec', 'start'].includes(env.npm_command ?? '');
}

/** Calls `end` once when the process that started this one has exited. */
export async function watchStarter(clock: Clock, readAncestors: ReadAncestors, end: () => void): Promise<void> {
  const first = await readAncestors();
  const stop = clock.every(lookMs, () => void look());
  const look = async () => {
    if ((await readAncestors()) === first) return;
    stop();
    end();
  };
}

/**
 * Returns the ids of parent and grandparent. The ids change at once when the parent exits, because an orphan gets
 * another parent.
 */
export async function ancestors(): Promise<string> {
  const parent = process.ppid;
  const stat = await readFile(`/proc/${parent}/stat`, 'latin1').catch(() => '');
  const [, name = '', grandparent = ''] = /^\d+ \((.*)\) \S (\d+)/.exec(stat) ?? [];
  return /^(sh|dash|bash|ash|busybox)$/.test(name) ? `${parent} ${grandparent}` : `${parent}`;
}
