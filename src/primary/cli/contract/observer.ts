import type { ClientText } from '../../../shared/client.js';
import type { RelayError } from '../../../shared/errors.js';
import type { ContextChange, QuotaWindow } from '../../../shared/health.js';
import type { Decoder, DecoderEvent, RequestKind, TurnEvent } from './adapter.js';

export const exitClasses = ['ok', 'nonzero', 'signal', 'spawn_error'] as const;
export type ExitClass = (typeof exitClasses)[number];

/** Reasons for ending a process: the work is done, the job was cut short, or the process is not needed any more. */
export const endReasons = ['done', 'timeout', 'cancelled', 'shutting_down', 'retired'] as const;
export type EndReason = (typeof endReasons)[number];

/**
 * Sources of the process of a job: a start, the processes on standby, a process that was renewed after an earlier question
 * of the client, or the process of its conversation, as it was or rewound to an earlier message.
 */
export const processSources = ['fresh', 'standby', 'renewed', 'live', 'rewound'] as const;
type ProcessSource = (typeof processSources)[number];

/** Receives events of the CLI processes, for metrics and logs. */
export interface CliObserver {
  exited(kind: ExitClass): void;
  /** Called after a signal was sent to the program and its process group. */
  killed(signal: 'SIGTERM' | 'SIGKILL', reason: EndReason): void;
  /** Called when processes that outlived their program were found and killed. */
  orphansReaped(count: number): void;
  output(stream: 'stdout' | 'stderr', bytes: number): void;
  /** Called with the time from the start of a program to its first byte, if the program was started for a job. */
  startedUp(ms: number): void;
  standbyTaken(result: 'hit' | 'miss'): void;
  liveSessionTaken(result: 'hit' | 'replay'): void;
  /** Called when a job gets its process. */
  processTaken(source: ProcessSource): void;
  /** Called when a process gets the results of its calls; `ms` is how long it has waited for them. */
  toolsHeld(ms: number): void;
  /** Called when a program reports how much of its account's limits is used. */
  quotaReported(windows: readonly QuotaWindow[]): void;
  /** Called when a program requests a capability that it does not have. */
  requestRefused(request: RequestKind): void;
  /** Called when a program writes a text that belongs to no turn. */
  textIgnored(): void;
  /** Called when the model's API has begun a message after the end of the answer. */
  lateMessage(): void;
  /** Called when a pause of an hour begins for a client, after three failed proofs in a row. `kind`: what is paused. */
  renewalsPaused(client: ClientText, kind: ContextChange): void;
}

/** Observer of programs that are no model CLI. */
export const noObserver: CliObserver = {
  exited: () => {},
  killed: () => {},
  orphansReaped: () => {},
  output: () => {},
  startedUp: () => {},
  standbyTaken: () => {},
  liveSessionTaken: () => {},
  processTaken: () => {},
  toolsHeld: () => {},
  quotaReported: () => {},
  requestRefused: () => {},
  textIgnored: () => {},
  lateMessage: () => {},
  renewalsPaused: () => {},
};

/** Maps the error that aborted a job to the reason for which its process ends. */
export function endReasonOf({ code }: RelayError): EndReason {
  return code === 'timeout' || code === 'shutting_down' || code === 'cancelled' ? code : 'done';
}

/** Handles the asides of a program. */
export interface AsideListener
  extends Pick<CliObserver, 'quotaReported' | 'requestRefused' | 'textIgnored' | 'lateMessage'> {
  reply(text: string): void;
}

/** Wraps a decoder so that it yields only events of turns. Asides go to the listener at once. */
export function withoutAsides(decoder: Decoder<DecoderEvent>, listener: AsideListener): Decoder {
  const isOfTurn = (event: DecoderEvent): event is TurnEvent => {
    if (event.type === 'quota-report') listener.quotaReported(event.windows);
    else if (event.type === 'request-refused') listener.requestRefused(event.request);
    else if (event.type === 'text-ignored') listener.textIgnored();
    else if (event.type === 'late-message') listener.lateMessage();
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
    get awaited() {
      return decoder.awaited ?? null;
    },
    get usedSoFar() {
      return decoder.usedSoFar ?? null;
    },
    read: (chunk) => Array.from(decoder.read(chunk)).filter(isOfTurn),
    requested: (request) => Array.from(decoder.requested?.(request) ?? []).filter(isOfTurn),
    exit: (exit) => Array.from(decoder.exit(exit)).filter(isOfTurn),
  };
}
