import type { RelayError } from '../../shared/errors.js';

export const exitClasses = ['ok', 'nonzero', 'signal', 'spawn_error'] as const;
export type ExitClass = (typeof exitClasses)[number];

/** Why a process is ended: its work is done, its job was cut short, or nobody needs it any more. */
export const endReasons = ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'] as const;
export type EndReason = (typeof endReasons)[number];

/** Is told what happens to the processes of the model CLI. */
export interface CliObserver {
  exited(kind: ExitClass): void;
  /** A signal was sent to the program and its group. */
  killed(signal: 'SIGTERM' | 'SIGKILL', reason: EndReason): void;
  /** Processes that had outlived their program were found and ended. */
  orphansReaped(count: number): void;
  output(stream: 'stdout' | 'stderr', bytes: number): void;
  /** A program that was started for a job has written its first byte, this long after its start. */
  startedUp(ms: number): void;
  standbyTaken(result: 'hit' | 'miss'): void;
  liveSessionTaken(result: 'hit' | 'replay'): void;
}

/** What the reason of an abort means for the process that is ended by it. */
export function endReasonOf({ code }: RelayError): EndReason {
  return code === 'timeout' || code === 'shutting_down' || code === 'cancelled' ? code : 'done';
}
