import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type { Swept } from '../../../shared/process/scanner.js';

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type Child = ChildProcessWithoutNullStreams & {
  readonly pid: number;
  /** Resolves when the program itself has exited, although children may still run. */
  readonly exited: Promise<ExitStatus>;
  readonly workingDirectory: string;
};

/** Means to find and end one program and all its children. */
export interface Containment {
  /** Returns the command that starts the program inside. With `outlives`, it may outlive a killed service for a while. */
  enter(
    program: string,
    args: readonly string[],
    outlives?: boolean,
  ): readonly [program: string, args: readonly string[]];
  /** Returns the ids of the processes inside. */
  pids(): Promise<readonly number[]>;
  /** Checks quickly whether the containment seems empty. `leader` is the process id of the program. */
  isQuiet(leader: number): Promise<boolean>;
  /** Kills all processes inside and removes the containment. Resolves when it is empty, or at a time limit. */
  clear(): Promise<Swept>;
  /**
   * After `clear`, returns suspected but unconfirmed descendants; null if nothing points to one. The list is empty if a
   * process lives whose id is unknown. Absent if processes cannot leave the containment.
   */
  findEscaped?(leader: number): Promise<readonly number[] | null>;
  /** Returns the resources used inside so far; null if they are not measured. */
  usage(): CgroupUsage | null;
}

/** Creates one containment for each program that is started. */
export interface ContainmentFactory {
  /** Method of containment, shown in the log, by `check` and by GET /version. */
  readonly means: TerminationMeans;
  /** Rejects if the system refuses. `cookie` marks the program's environment. */
  create(serial: number, cookie: string): Promise<Containment>;
  /** Removes the factory's cgroup or remaining processes. Called after the last program has ended. */
  close(): Promise<void>;
}

export const terminationMeans = ['cgroup', 'process-group'] as const;
export type TerminationMeans = (typeof terminationMeans)[number];
