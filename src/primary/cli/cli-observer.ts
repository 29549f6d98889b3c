import type { RelayError } from '../../shared/errors.js';
import { Cancelled } from '../../shared/errors.js';

export const exitClasses = ['ok', 'nonzero', 'signal', 'spawn_error'] as const;
export type ExitClass = (typeof exitClasses)[number];

/** Why a process tree is ended: its work is done, its job was cut, or nobody needs it any more. */
export const endReasons = ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'] as const;
export type EndReason = (typeof endReasons)[number];

/** Hears what happens to the processes of the model CLI. */
export interface CliObserver {
  exited(kind: ExitClass): void;
  killed(signal: 'SIGTERM' | 'SIGKILL', reason: EndReason): void;
  /** Processes that had outlived their program were found and ended. */
  orphansReaped(count: number): void;
  output(stream: 'stdout' | 'stderr', bytes: number): void;
}

/** What an abort's reason means for the process that it ends. */
export function endReasonOf(reason: unknown): EndReason {
  if (reason instanceof Cancelled) return 'cancelled';
  const { code } = reason as RelayError;
  return code === 'timeout' || code === 'shutting_down' ? code : 'done';
}
