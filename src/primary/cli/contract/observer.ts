import type { RelayError } from '../../../shared/errors.js';
import type { QuotaWindow } from '../../../shared/health.js';
import type { Decoder, DecoderEvent, RequestKind, TurnEvent } from './adapter.js';

export const exitClasses = ['ok', 'nonzero', 'signal', 'spawn_error'] as const;
export type ExitClass = (typeof exitClasses)[number];

/** Why a process is ended: its work is done, its job was cut short, or it is no longer needed. */
export const endReasons = ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'] as const;
export type EndReason = (typeof endReasons)[number];

/** Receives what happens to the processes of the model CLI. */
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
  /** A process has waited this long for the results of its calls, and gets them. */
  toolsHeld(ms: number): void;
  /** A program has reported how much of its account's limits is used. */
  quotaReported(windows: readonly QuotaWindow[]): void;
  /** A program has asked for something that it is not given. */
  requestRefused(request: RequestKind): void;
  /** A program has written a text that belongs to no turn. */
  textIgnored(): void;
}

/** What the reason of an abort means for the process that is ended by it. */
export function endReasonOf({ code }: RelayError): EndReason {
  return code === 'timeout' || code === 'shutting_down' || code === 'cancelled' ? code : 'done';
}

/** What is done about the asides of a program. */
export interface AsideListener extends Pick<CliObserver, 'quotaReported' | 'requestRefused' | 'textIgnored'> {
  reply(text: string): void;
}

/** A decoder that yields what belongs to turns. Asides go to the listener, whenever they come. */
export function withoutAsides(decoder: Decoder<DecoderEvent>, listener: AsideListener): Decoder {
  const isOfTurn = (event: DecoderEvent): event is TurnEvent => {
    if (event.type === 'quota-report') listener.quotaReported(event.windows);
    else if (event.type === 'request-refused') listener.requestRefused(event.request);
    else if (event.type === 'text-ignored') listener.textIgnored();
    else if (event.type === 'reply') listener.reply(event.text);
    else return true;
    return false;
  };
  return {
    begin: (turn) => decoder.begin?.(turn),
    get isMidAnswer() {
      return decoder.isMidAnswer ?? false;
    },
    get hasBegun() {
      return decoder.hasBegun;
    },
    get usedSoFar() {
      return decoder.usedSoFar ?? null;
    },
    read: (chunk) => Array.from(decoder.read(chunk)).filter(isOfTurn),
    requested: (request) => Array.from(decoder.requested?.(request) ?? []).filter(isOfTurn),
    exit: (exit) => Array.from(decoder.exit(exit)).filter(isOfTurn),
  };
}
