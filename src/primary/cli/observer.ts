import type { QuotaWindow } from '../../shared/breaker.js';
import type { RelayError } from '../../shared/errors.js';
import type { Decoder, DecoderEvent, TurnEvent } from './adapter.js';

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
  /** A program has told how much of its account's limits is used. */
  quotaReported(windows: readonly QuotaWindow[]): void;
}

/** What the reason of an abort means for the process that is ended by it. */
export function endReasonOf({ code }: RelayError): EndReason {
  return code === 'timeout' || code === 'shutting_down' || code === 'cancelled' ? code : 'done';
}

/** A decoder that yields what belongs to turns. What the program tells of its account goes to the observer, whenever it comes. */
export function withoutQuotaReports(
  decoder: Decoder<DecoderEvent>,
  observer: Pick<CliObserver, 'quotaReported'>,
): Decoder {
  const turnEvents = (events: Iterable<DecoderEvent>): readonly TurnEvent[] =>
    Array.from(events).filter((event): event is TurnEvent => {
      if (event.type === 'quota-report') observer.quotaReported(event.windows);
      return event.type !== 'quota-report';
    });
  return {
    begin: (turn) => decoder.begin?.(turn),
    get isMidAnswer() {
      return decoder.isMidAnswer ?? false;
    },
    get hasBegun() {
      return decoder.hasBegun;
    },
    read: (chunk) => turnEvents(decoder.read(chunk)),
    exit: (exit) => turnEvents(decoder.exit(exit)),
  };
}
