import type { ModelEntry } from '../../../shared/api/models.js';
import type { CliReason, QuotaRefusal } from '../../../shared/errors.js';
import { type QuotaWindow, quotaWindowNames } from '../../../shared/health.js';
import {
  type CallDelta,
  type CallStart,
  type Effort,
  type Image,
  type Message,
  type ModelRefusal,
  type OptionalWish,
  optionalWishes,
  type Sampling,
  type TextDelta,
  type ThinkingForm,
  type ThoughtDelta,
  type ThoughtEnd,
  type Tool,
  type ToolCall,
  type ToolOffer,
  type ToolResult,
  type Usage,
} from '../../../shared/job.js';

export type {
  CallDelta,
  CallStart,
  Effort,
  Image,
  Message,
  ModelEntry,
  ModelRefusal,
  OptionalWish,
  QuotaWindow,
  Sampling,
  TextDelta,
  ThinkingForm,
  ThoughtDelta,
  ThoughtEnd,
  Tool,
  ToolCall,
  ToolOffer,
  ToolResult,
  Usage,
};
export { optionalWishes, quotaWindowNames };

/**
 * What a job asks for that a program may need at its start. Where its plan does not depend on a part, a
 * process that waits serves callers with any.
 */
export interface LaunchOptions {
  readonly model: string | null;
  readonly system: string | null;
  /** A JSON Schema, as JSON. */
  readonly schema: string | null;
  readonly effort: Effort | null;
}

/** The launch of a request that asks for nothing but a model. */
export function plainLaunch(model: string | null): LaunchOptions {
  return { model, system: null, schema: null, effort: null };
}

/** How to start the program for one launch. No prompt, history or system text is ever among the arguments. */
export interface CommandLine {
  readonly args: readonly string[];
  /** Files that must exist before the start. They are written with mode 0600 and removed with the process. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

/** One turn. `history` holds the messages before it, oldest first. */
export interface Turn extends LaunchOptions {
  readonly text: string;
  readonly images?: readonly Image[];
  /** What the client's tools have returned for the calls of the last message in `history`, or of this process. */
  readonly results?: readonly ToolResult[];
  readonly history: readonly Message[];
  /** The tools of the client; without it, there are none. */
  readonly offer?: ToolOffer;
  readonly sampling?: Sampling;
  /** What the client gets of the model's thoughts; without it, nothing. A program may yield them in any case. */
  readonly thinking?: ThinkingForm;
  /** The answer ends before the first of these, where the program can see to that. */
  readonly stop?: readonly string[];
  /** The messages before it that this process has received or written itself; they are not sent again. */
  readonly heard?: readonly Message[];
}

/** What to write to stdin for a turn, and whether stdin stays open for further turns. */
export interface TurnInput {
  /** Empty where the program must write something first: then a `StdinReply` sends the turn. */
  readonly text: string;
  /** Further pieces. Each is written when the decoder has yielded `input-taken` for the piece before. */
  readonly rest?: readonly string[];
  readonly stdin: 'keep-open' | 'end';
}

/** The program has taken in what was written and waits for the next piece of the turn's input. */
export interface InputTaken {
  readonly type: 'input-taken';
}

export interface TurnEnd {
  readonly type: 'turn-end';
  /** The whole answer, where it differs from the sum of the deltas; else null. */
  readonly text: string | null;
  readonly model: string | null;
  readonly usage: Usage;
  /** What the model has called of the client's tools: the program waits for the results, as the next turn. */
  readonly calls?: readonly ToolCall[];
  /** The sequence of the turn's `stop` that has ended the answer. */
  readonly stopSequence?: string | null;
  /** The model has stopped before the end of its answer, at a limit: `maxTokens`, or one of the model itself. */
  readonly isCutShort?: boolean;
  /** The model, or its API, declines to continue. The text and the calls before that are part of the answer. */
  readonly refusal?: ModelRefusal;
}

export interface TurnFailed {
  readonly type: 'turn-failed';
  readonly reason: CliReason;
  /** One sentence for the client. */
  readonly message: string;
  /** For the reason `quota`, where a code says so. Without it, the request itself may have caused the failure. */
  readonly quota?: QuotaRefusal;
  /** For the reason `auth`, where a code such as 401 says that the account is refused. Without it, as for `quota`. */
  readonly scope?: 'account';
  /** The end of what the program wrote to stderr. Without known secrets, but it may name paths. */
  readonly stderr?: string;
}

/** The API has no room, and the program waits this long before it asks again. */
export interface Waiting {
  readonly type: 'waiting';
  readonly ms: number;
  /** How the turn fails if there is no time to wait. */
  readonly failure: TurnFailed;
}

/** The API of the model has begun a message, and names the model that answers: it may be another than the one that was asked. */
export interface ModelNamed {
  readonly type: 'model-named';
  readonly model: string;
}

/** What the program reports of its account, at any time: it is no part of a turn. */
export interface QuotaReport {
  readonly type: 'quota-report';
  readonly windows: readonly QuotaWindow[];
}

/** A part of an answer that belongs to another turn. The turn continues, but the process must not get another one. */
export interface OutOfTurn {
  readonly type: 'stray';
}

/** To be written to stdin at once: the next request of a protocol, or the answer to one of the program's. */
export interface StdinReply {
  readonly type: 'reply';
  readonly text: string;
}

/** What a program may ask the relay for. */
export const requestKinds = ['permission', 'files', 'terminal', 'tool', 'other'] as const;
export type RequestKind = (typeof requestKinds)[number];

/** The program has written a text that belongs to no turn, such as a greeting. It was left out. */
export interface TextIgnored {
  readonly type: 'text-ignored';
}

/** The program has asked for something that it is not given. The refusal is a `StdinReply`. */
export interface RequestRefused {
  readonly type: 'request-refused';
  readonly request: RequestKind;
}

/** What the model thinks, says and calls, in its order. A thought also ends with the text or the call that follows it. */
export type AnswerEvent = TextDelta | CallStart | CallDelta | ThoughtDelta | ThoughtEnd;
export type TurnEvent = AnswerEvent | ModelNamed | InputTaken | TurnEnd | TurnFailed | Waiting | OutOfTurn;
/** What a program says at any time, in a turn or outside of one. */
export type Aside = QuotaReport | StdinReply | RequestRefused | TextIgnored;
export type DecoderEvent = TurnEvent | Aside;

/** How a program ended: its exit code, or the signal that killed it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The end of what it wrote to stderr, printable characters only. */
  readonly stderr: string;
}

/** The program wrote a line that is longer than the limit. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong';
}

/** Where one process can ask the relay for something by HTTP, beside stdin and stdout. */
export interface Callback {
  readonly url: string;
  /** Every request needs them: they say which process asks. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What a program has posted to its callback. */
export interface CallbackRequest {
  /** Of no other request. */
  readonly id: string;
  readonly body: string;
  /** Answers with this JSON, now or later; with an empty text only that the request has come. */
  answer(json: string): void;
}

/** Reads the stdout of one process, turn after turn. */
export interface Decoder<Event = TurnEvent> {
  /** The turn with this number, as in `write`, begins. Only programs that take further turns need to know. */
  begin?(turn: number): void;
  /** Whether a part of an answer has been read without an event, so that it would enter the next answer. */
  readonly isMidAnswer?: boolean;
  /** Whether the model itself has written anything in this turn: a greeting of the program does not count. */
  readonly hasBegun: boolean;
  /** What the program has reported of this turn's usage so far; null if nothing. It counts if the turn has no good end. */
  readonly usedSoFar?: Usage | null;
  /** Throws `LineTooLong` when the program writes without an end of line. */
  read(chunk: string): Iterable<Event>;
  /** The program has posted this to its callback. Without it, the process has none. */
  requested?(request: CallbackRequest): Iterable<Event>;
  /** The last events of an unfinished turn, once the program has exited and its stdout has been read. */
  exit(exit: Exit): Iterable<Event>;
}

/** Writes the turns of one process. It remembers what it has written to the process. */
export interface TurnWriter {
  /** `number` counts the turns of one process from 1. Throws `cli_error` where the opening has failed. */
  write(turn: Turn, number: number): TurnInput;
}

/** The protocol with one process, from its start to its end. Writer and decoder may share what they know. */
export interface Protocol {
  readonly writer: TurnWriter;
  readonly decoder: Decoder<DecoderEvent>;
  /**
   * What to write as soon as the process has started, so that it is ready sooner. From then on its stdout is read: what
   * the decoder yields before the first turn may be asides alone; with anything else the process counts as failed.
   * `workingDirectory` is the process's own, absolute.
   */
  opening?(workingDirectory: string, callback?: Callback | null): string;
}

/**
 * How a turn says what it can have beside its text. Where one of these is missing, the program does not take it: then
 * images and an effort are refused, and a schema stands in the prompt.
 */
export interface Capabilities {
  readonly image?: (image: Image) => unknown;
  /** `schema` is JSON. Undefined for one that it does not take. */
  readonly schema?: (schema: string) => unknown;
  readonly effort?: (effort: Effort) => unknown;
  /** It shows what the model thinks, where the model does. */
  readonly thoughts?: true;
  /** How the model may call the client's tools: any number at once, or one at a time. Without it, calls are emulated by a schema. */
  readonly tools?: 'parallel' | 'single';
  /** It can be told that it must call a tool, and which. Otherwise such a call is emulated. */
  readonly toolChoice?: true;
  /** Tools of its own that the operator has opened: a client's tool can't have such a name. */
  readonly ownTools?: ReadonlySet<string>;
  /** What it takes of these. */
  readonly wishes?: readonly OptionalWish[];
  /** The values that its API accepts for those of a client. `thinks`: the client asks the model to think. */
  readonly fitSampling?: (sampling: Sampling, thinks: boolean) => Sampling;
}

/** One version of a program, as learned from its file: how to start it, and how to talk with it. Pure translation. */
export interface ProgramVersion {
  readonly version: string | null;
  /** Not all could be learned: it is worth to try again some time later. */
  readonly isProvisional?: boolean;
  readonly extras: Capabilities;
  /** `systemPath` is a private path where the plan may put the system text. */
  plan(launch: LaunchOptions, systemPath: string): CommandLine;
  /** A new one for each process. */
  protocol(): Protocol;
  /**
   * Why there is no login, in one sentence; null when jobs can be run. Rejects with `cli_error` where something else is
   * wrong. Spends no tokens.
   */
  check(consult: Consult): Promise<string | null>;
  /** The models it can use; null where it has no list. */
  listModels(consult: Consult): Promise<readonly ModelEntry[] | null>;
  /** A start that renews the adapter's `login` when that is due. The program then waits, because its stdin stays open. */
  readonly renewal?: { readonly args: readonly string[]; readonly input: string };
}

export interface Consultation {
  readonly code: number | null;
  readonly stdout: string;
}

/**
 * Runs the program briefly with these arguments and with `input` as its whole stdin, and returns what it printed until it
 * exited. With `isEnough`, stdin stays open, and the program is ended as soon as this is true of what it has printed; a
 * text that it returns is written to stdin. With `file`, this text is in a private file, and `filePlace` in an argument
 * stands for the path of it.
 */
export type Consult = (
  args: readonly string[],
  input?: string,
  isEnough?: (stdout: string) => boolean | string,
  file?: string,
) => Promise<Consultation>;

export const filePlace = '{file}';

/** A private folder (0700) for each process, removed with it. All paths are relative to it. */
export interface PrivateHome {
  /** Variables that name folders in it, which are made: `{ HOME: '.', CODEX_HOME: '.codex' }`. */
  readonly variables: Readonly<Record<string, string>>;
  /** Written with mode 0600 before the start. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  /** Symbolic links to files of the operator, by their absolute path; left out if the file does not exist. */
  readonly links: readonly { readonly path: string; readonly to: string }[];
}

/** What a file holds of a login: the end of its token, in milliseconds since the epoch, or no tokens any more. */
export type StoredLogin = { readonly expiresAt: number } | 'ended';

/**
 * A login in files whose short-lived token the program renews itself. A renewal spends the stored secret: if the program
 * is ended before it has stored the new one, the login is lost.
 */
export interface FileLogin {
  /** The file that holds it, absolute. */
  readonly path: string;
  /** Returns null for a text that is no such login. */
  read(text: string): StoredLogin | null;
  /** With less than this left, every start of the program renews the token. */
  readonly renewedBeforeMs: number;
  /** A folder that exists during a renewal. The program updates its time. */
  readonly lock: string;
  /** Without an update for this long, a lock has been left behind. */
  readonly lockStaleMs: number;
  /** A file that names the process that holds the lock, absolute. Older versions do not write it. */
  readonly lockOwner: string;
  /** The holder, with the birth of its lock in milliseconds since the epoch; null if the text does not say. */
  readOwner(text: string): { readonly pid: number; readonly lockBornAt: number } | null;
}

/** Pure translation between the relay and one kind of model CLI. It starts nothing and owns nothing. */
export interface Adapter {
  readonly name: string;
  /** Who makes its models, as `gen_ai.provider.name` of OpenTelemetry says it; without it, its own name. */
  readonly provider?: string;
  /** The program and its leading arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  /** The variable from which the program reads its credential; null where it has none. */
  readonly credentialVariable: string | null;
  /** Variables that the program is always started with. Variables that the operator allows override them. */
  readonly env: Readonly<Record<string, string>>;
  /** Where the program keeps what it writes; without it, in the HOME of the service. */
  readonly home?: PrivateHome;
  /** The login that the program renews; without it, there is none, or the program gets a credential that lasts. */
  readonly login?: FileLogin;
  /** The models that a request may name, the default first; null where only the program knows. */
  readonly models: readonly string[] | null;
  /** Names of this form are models of the program, whether it lists them or not: an alias does not take their place. */
  readonly modelForm?: RegExp;
  /** It has no default: a model must be named. */
  readonly needsModel?: boolean;
  /** It reports what each answer costs, so that keys may have a budget in dollars. */
  readonly reportsCost?: boolean;
  /** Learns version and flags by consulting the program. Called once for each program file. */
  learn(consult: Consult): Promise<ProgramVersion>;
}

export const unknownUsage: Usage = {
  inputTokens: null,
  outputTokens: null,
  costUsd: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
};

/** Of two turns together. A count that one of them does not have is not known of both. */
export function addedUsage(first: Usage, second: Usage): Usage {
  const sum = (name: keyof Usage) => {
    const [a, b] = [first[name], second[name]];
    return a === null || b === null ? null : a + b;
  };
  return {
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    costUsd: sum('costUsd'),
    cacheReadTokens: sum('cacheReadTokens'),
    cacheWriteTokens: sum('cacheWriteTokens'),
  };
}

/** The end of a turn whose program has exited in the middle of it. */
export function crashed({ code, signal, stderr }: Exit): TurnFailed {
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  const said = stderr.trim();
  return {
    type: 'turn-failed',
    reason: 'crashed',
    message: `the model CLI ${how}`,
    ...(said !== '' && { stderr: said }),
  };
}
