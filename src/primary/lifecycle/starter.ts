import { readFile } from 'node:fs/promises';
import { isatty } from 'node:tty';
import type { Clock } from '../../shared/clock.js';
import type { Environment } from '../../shared/config/config.js';

/** The standard streams. */
const streams = [0, 1, 2];
const lookMs = 1000;
/** A shell sends SIGHUP before it goes, and its terminal goes after it. */
const hangUpMs = 1500;

/** Whether one of the standard streams is a terminal now: one that was closed is none any more. */
export function hasTerminal(): boolean {
  return streams.some((fd) => isatty(fd));
}

/** What a hang-up can mean. */
export interface HangUpActions {
  reload(): void;
  end(): void;
}

/**
 * SIGHUP asks for a reload, but it also tells that a terminal has been closed. A service that was started at one and has
 * none left ends with it; with `nohup` it was never at one.
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

/** How a process is placed: its parent, and that one's parent where the parent is only a shell that npm has put between. */
export type ReadAncestors = () => Promise<string>;

/** `npx prompt-relay serve` and `npm start` wait for the service: whoever ends them means the service. */
export function isStartedByNpm(env: Environment): boolean {
  return ['exec', 'start'].includes(env.npm_command ?? '');
}

/** Calls `end` once when a process that has started this one has gone. */
export async function watchStarter(clock: Clock, readAncestors: ReadAncestors, end: () => void): Promise<void> {
  const first = await readAncestors();
  const stop = clock.every(lookMs, () => void look());
  const look = async () => {
    if ((await readAncestors()) === first) return;
    stop();
    end();
  };
}

/** The ids of parent and grandparent. An orphan is given to another parent at once. */
export async function ancestors(): Promise<string> {
  const parent = process.ppid;
  const stat = await readFile(`/proc/${parent}/stat`, 'latin1').catch(() => '');
  const [, name = '', grandparent = ''] = /^\d+ \((.*)\) \S (\d+)/.exec(stat) ?? [];
  return /^(sh|dash|bash|ash|busybox)$/.test(name) ? `${parent} ${grandparent}` : `${parent}`;
}
