import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type { Swept } from '../../../shared/process/scanner.js';

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program that has been started. */
export type Child = ChildProcessWithoutNullStreams & {
  readonly pid: number;
  /** Resolves when the program itself has exited; what it has started may live on. */
  readonly exited: Promise<ExitStatus>;
  readonly workingDirectory: string;
};

/** What holds one program and everything it starts, so that all of it can be found and ended. */
export interface Containment {
  /** The command that starts the program inside. */
  enter(program: string, args: readonly string[]): readonly [program: string, args: readonly string[]];
  /** Ids of what runs inside. */
  pids(): Promise<readonly number[]>;
  /** Whether nothing seems to be left inside, by a quick check. `leader` is the id of the program. */
  isQuiet(leader: number): Promise<boolean>;
  /** Kills whatever is inside and removes the containment. Resolves when nothing is left, or at a limit. */
  clear(): Promise<Swept>;
  /**
   * After `clear`, processes that may be the program's though its marks can't be seen on them; null without a sign of any. The list is empty where something lives that can't be caught. Only for a containment that something can leave.
   */
  rest?(leader: number): Promise<readonly number[] | null>;
  /** What was used inside so far; null where that is not measured. */
  usage(): CgroupUsage | null;
}

/** Makes one containment for each program that is started. */
export interface ContainmentFactory {
  /** How processes are contained here: shown in the log, by `check` and by GET /version. */
  readonly means: TerminationMeans;
  /** Rejects where the system refuses. `cookie` marks the program's environment. */
  create(serial: number, cookie: string): Promise<Containment>;
  /** Removes what the factory itself has made. Called when nothing is started any more. */
  close(): Promise<void>;
}

export const terminationMeans = ['cgroup', 'process-group'] as const;
export type TerminationMeans = (typeof terminationMeans)[number];
