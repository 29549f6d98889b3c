import type { ModelEntry } from '../../../shared/api/models.js';
import type { CliReason, QuotaRefusal } from '../../../shared/errors.js';
import { type QuotaWindow, quotaWindowNames } from '../../../shared/health.js';
import {
  type AnswerEvent,
  type Attachment,
  type CacheBreakpoint,
  type CallDelta,
  type CallStart,
  type Effort,
  type FileDocument,
  type Image,
  isDocument,
  type Message,
  type ModelRefusal,
  type OptionalWish,
  optionalWishes,
  type PassageCited,
  type Sampling,
  type SearchMade,
  type TextDelta,
  type ThinkingForm,
  type ThoughtDelta,
  type ThoughtEnd,
  type Tool,
  type ToolCall,
  type ToolOffer,
  type ToolResult,
  type Usage,
  type WebSearch,
} from '../../../shared/job.js';
import { jsonPieces, jsonUnits } from '../../../shared/text/json-pieces.js';
import { terminalSequences } from '../../../shared/text/terminal-sequences.js';
import type { AwaitedStep, MessageAdded, MessageInput, MessageRefused } from './awaited-step.js';
import type { Callback, CallbackPort, CallbackRequest } from './callbacks.js';
import type { Consult } from './consult.js';
import type { AddedField, ModelRules, ModelSizes, SampledTurn } from './model-rules.js';

export type { Callback, CallbackRequest } from './callbacks.js';
export type { Consult, Consultation, TrialEnv } from './consult.js';
export { filePlace } from './consult.js';
export type {
  AnswerEvent,
  Attachment,
  CacheBreakpoint,
  CallDelta,
  CallStart,
  Effort,
  FileDocument,
  Image,
  Message,
  ModelEntry,
  ModelRefusal,
  OptionalWish,
  PassageCited,
  QuotaWindow,
  Sampling,
  SearchMade,
  TextDelta,
  ThinkingForm,
  ThoughtDelta,
  ThoughtEnd,
  Tool,
  ToolCall,
  ToolOffer,
  ToolResult,
  Usage,
  WebSearch,
};
export { isDocument, jsonPieces, jsonUnits, optionalWishes, quotaWindowNames, terminalSequences };

/**
 * Options of a job that a program may need at its start. If the adapter's plan ignores an option, one standby process
 * can serve jobs with any value of it.
 */
export interface LaunchOptions {
  readonly model: string | null;
  readonly system: string | null;
  /** JSON Schema, as JSON text. */
  readonly schema: string | null;
  readonly effort: Effort | null;
  /** Present if the model may search the web. Such a program has no other tool. */
  readonly hasSearch?: true;
}

/** Returns the launch options of a request that sets only a model. */
export function plainLaunch(model: string | null): LaunchOptions {
  return { model, system: null, schema: null, effort: null };
}

/** Arguments and files of one start of the program. The arguments never contain a prompt, history or system text. */
export interface CommandLine {
  readonly args: readonly string[];
  /** Files to create before the start, with mode 0600. The service removes the files with the process. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

/** Limits of the web searches for one answer. `maxUses` may be 0. */
export type SearchLimits = Omit<WebSearch, 'path' | 'maxUses'> & { readonly maxUses: number };

/** A message to send to the model, with its options. `history` holds the earlier messages, oldest first. */
export interface Turn extends LaunchOptions {
  readonly text: string;
  /** Images, and documents if `Capabilities.document` is set. */
  readonly images?: readonly Attachment[];
  /**
   * Results of the client's tools for the calls of the last message in `history`, or for the open calls of this
   * process.
   */
  readonly results?: readonly ToolResult[];
  readonly history: readonly Message[];
  /** Tools of the client; absent if the client sends none. */
  readonly offer?: ToolOffer;
  readonly sampling?: Sampling;
  /** Breakpoint of the client; null if the API has refused a breakpoint, and absent if the client sets none. */
  readonly cache?: CacheBreakpoint | null;
  /** Limits of the web searches; absent unless the program was started with `hasSearch`. */
  readonly search?: SearchLimits;
  /**
   * Form in which the client gets the model's thoughts; absent if it gets none. The program may yield thoughts in any
   * case.
   */
  readonly thinking?: ThinkingForm;
  /** Stop sequences: the answer ends before the first of them, if the program supports this. */
  readonly stop?: readonly string[];
  /** Fields that only the relay would add, and that the API refuses for this model. */
  readonly withheld?: readonly AddedField[];
  /** Earlier messages that this process has already received or written; the writer does not send them again. */
  readonly heard?: readonly Message[];
}

/** Text to write to stdin for a turn, and whether stdin stays open for further turns. */
export interface TurnInput {
  /** First text to write. The text is empty if the program must write first; a `StdinReply` then sends the turn. */
  readonly text: string;
  /** Text that follows at once, if it is long. Its pieces are made while it is written. */
  readonly pieces?: Iterable<string>;
  /** Further pieces of the input. Each is written when the decoder has yielded `input-taken` for the previous piece. */
  readonly rest?: Iterable<string>;
  readonly stdin: 'keep-open' | 'end';
}

/** Event: the program has accepted the last piece of input and waits for the next piece of this turn. */
export interface InputTaken {
  readonly type: 'input-taken';
}

export interface TurnEnd {
  readonly type: 'turn-end';
  /** Whole answer, if it differs from the sum of the deltas; null otherwise. */
  readonly text: string | null;
  readonly model: string | null;
  readonly usage: Usage;
  /** Calls of the client's tools. The program then waits for their results, which come as the next turn. */
  readonly calls?: readonly ToolCall[];
  /** Stop sequence that ended the answer. */
  readonly stopSequence?: string | null;
  /** Whether the answer was cut off: by `maxTokens`, by a limit of the model itself, or by its client. */
  readonly isCutShort?: boolean;
  /** Refusal by the model or its API. Text and calls before it belong to the answer. */
  readonly refusal?: ModelRefusal;
  /** Limits of the model that has answered; absent if the program does not report them. */
  readonly sizes?: ModelSizes;
}

export interface TurnFailed {
  readonly type: 'turn-failed';
  readonly reason: CliReason;
  /** Sentence about the failure, for the client. */
  readonly message: string;
  /** Scope and end of the quota, with the reason `quota`, if an error code shows them. If it is absent, the request itself may be the cause. */
  readonly quota?: QuotaRefusal;
  /**
   * Set with the reason `auth`, if a code such as 401 shows that the account is refused. If it is absent, the request
   * itself may be the cause.
   */
  readonly scope?: 'account';
  /** Last part of the program's stderr. Known secrets are removed; paths may remain. */
  readonly stderr?: string;
}

/** Event: the API is overloaded or limited, and the program retries after `ms` milliseconds. */
export interface Waiting {
  readonly type: 'waiting';
  readonly ms: number;
  /** Failure that ends the turn if the job cannot wait this long. */
  readonly failure: TurnFailed;
}

/** Event: the API has begun a message and names the model that answers, which may differ from the requested model. */
export interface ModelNamed {
  readonly type: 'model-named';
  readonly model: string;
}

/** Event: limits of the account, as the program reports them. Reports may arrive at any time and belong to no turn. */
export interface QuotaReport {
  readonly type: 'quota-report';
  readonly windows: readonly QuotaWindow[];
}

/**
 * Event: unexpected output, such as a part of the answer to another turn. The current turn continues, but the process
 * must not get another one.
 */
export interface UnexpectedOutput {
  readonly type: 'stray';
}

/**
 * Event: text to write to stdin at once, as the next request of a protocol or the answer to a request of the program.
 */
export interface StdinReply {
  readonly type: 'reply';
  readonly text: string;
}

/** Kinds of requests that a program may send to the relay. */
export const requestKinds = ['permission', 'files', 'terminal', 'tool', 'other'] as const;
export type RequestKind = (typeof requestKinds)[number];

/** Event: the program wrote a text outside of any turn, such as a greeting. The text was dropped. */
export interface TextIgnored {
  readonly type: 'text-ignored';
}

/** Event: the program requested a capability that it does not have. A `StdinReply` carries the refusal. */
export interface RequestRefused {
  readonly type: 'request-refused';
  readonly request: RequestKind;
}

export type TurnEvent =
  | AnswerEvent
  | ModelNamed
  | InputTaken
  | MessageAdded
  | MessageRefused
  | TurnEnd
  | TurnFailed
  | Waiting
  | UnexpectedOutput;
/** Event: the model's API has begun a message after the end of the answer, such as the rest of a cut one. */
export interface LateMessage {
  readonly type: 'late-message';
}

/** Events that may arrive at any time, in a turn or between turns. */
export type Aside = QuotaReport | StdinReply | RequestRefused | TextIgnored | LateMessage;
export type DecoderEvent = TurnEvent | Aside;

/** Exit code of a program, or the signal that killed it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** Last part of the program's stderr, printable characters only. */
  readonly stderr: string;
}

/** Thrown when a line of the program is longer than the limit. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong';
}

/** Reads the stdout of one process and yields events, for one turn after another. */
export interface Decoder<Event = TurnEvent> {
  /** Called when the turn with this number (as in `write`) begins. Needed only if the program takes further turns. */
  begin?(turn: number): void;
  /**
   * Whether the decoder has read part of an answer without yielding an event, so that the part would enter the next
   * answer.
   */
  readonly isMidAnswer?: boolean;
  /** Whether the model has written anything in this turn. A greeting of the program does not count. */
  readonly hasBegun: boolean;
  /** Step that the program must finish now; null if the model may take its time. */
  readonly awaited?: AwaitedStep<TurnEnd | TurnFailed> | null;
  /** Usage that the program has reported for this turn so far; null if none. Counted if the turn does not end well. */
  readonly usedSoFar?: Usage | null;
  /** Throws `LineTooLong` if a line exceeds the limit. */
  read(chunk: string): Iterable<Event>;
  /**
   * Handles a request that the program has posted to its callback. Without this method, the process has no callback.
   */
  requested?(request: CallbackRequest): Iterable<Event>;
  /** Yields the last events of an unfinished turn, after the program has exited and its stdout has been read. */
  exit(exit: Exit): Iterable<Event>;
}

/** Writes the turns of one process, and tracks what the process has received. */
export interface TurnWriter {
  /**
   * Returns the input of a turn. `number` counts the turns of one process from 1. Throws `cli_error` if the opening has
   * failed.
   */
  write(turn: Turn, number: number): TurnInput;
  /** Adds a message to the turn. Returns null if the program takes none at this point. */
  add?(text: string): MessageInput | null;
  /** Returns the input of a renewal, null if the process must end. `turn-end` is the proof that nothing is left. */
  renew?(): TurnInput | null;
  /**
   * Returns the input that leaves only these first messages of the conversation; null if the process cannot be rewound to
   * them, or could not prove it. `turn-end` is the proof that exactly they are left.
   */
  rewind?(kept: readonly Message[]): TurnInput | null;
  /** Returns the input that ends the turn early, with any event of its end; null if the process must end instead. */
  interrupt?(): TurnInput | null;
}

/** Protocol with one process, from its start to its end. Writer and decoder may share state. */
export interface Protocol {
  readonly writer: TurnWriter;
  readonly decoder: Decoder<DecoderEvent>;
  /**
   * Returns the text to write to a process that has just started, so that it is ready for its first turn sooner. Its
   * answer is read before this turn: an event of the decoder that is not an aside then fails the process.
   * `workingDirectory`: absolute path of the private directory of the process.
   */
  opening?(workingDirectory: string, callback?: Callback | null): string;
}

/**
 * Features of a program beside text, and how a turn encodes them. If one is missing, the program does not support it:
 * images and an effort are then refused, a document is replaced by its text, and a schema is written into the prompt.
 */
export interface Capabilities {
  readonly image?: (image: Image) => unknown;
  readonly document?: (document: FileDocument) => unknown;
  /** `schema` is JSON. Returns undefined for a schema that the program does not support. */
  readonly schema?: (schema: string) => unknown;
  readonly effort?: (effort: Effort) => unknown;
  /** Whether the program shows the thoughts of models that have any. */
  readonly thoughts?: true;
  /**
   * Whether the model may call several of the client's tools at once, or one at a time. If absent, calls are emulated
   * with a schema.
   */
  readonly tools?: 'parallel' | 'single';
  /** Whether the program can force the model to call a tool, or a certain tool. If not, such a call is emulated. */
  readonly toolChoice?: true;
  /** Whether the program can search the web, with this as its only tool. */
  readonly search?: true;
  /** Names of native tools that the operator has enabled. A client's tool cannot use such a name. */
  readonly ownTools?: ReadonlySet<string>;
  /** Optional request fields that the program supports. */
  readonly wishes?: readonly OptionalWish[];
  /** Returns the values that the API accepts in place of the client's. */
  readonly fitSampling?: (sampling: Sampling, turn: SampledTurn) => Sampling;
  /** Returns the rules of a model; absent if they are the same for all models. Null stands for the default model. */
  readonly rulesOf?: (model: string | null) => ModelRules;
}

/** Knowledge about one version of a program: how to start it and how to talk with it. Pure translation. */
export interface ProgramVersion {
  readonly version: string | null;
  /** Parts of a request that a renewed process cannot change; absent if the program cannot be renewed. */
  readonly keptParts?: readonly ('system' | 'schema' | 'offer')[];
  /** Whether some facts could not be learned, so that learning should be repeated later. */
  readonly isProvisional?: boolean;
  readonly extras: Capabilities;
  /** `systemPath` is a private path at which the plan may place the system text. */
  plan(launch: LaunchOptions, systemPath: string): CommandLine;
  /** Returns a new protocol, for one process. */
  protocol(): Protocol;
  /**
   * Returns why the login is missing, in one sentence; null if jobs can run. Rejects with `cli_error` for any other
   * fault. Spends no tokens.
   */
  check(consult: Consult): Promise<string | null>;
  /** Returns the models that the program can use; null if it has no list. */
  listModels(consult: Consult): Promise<readonly ModelEntry[] | null>;
  /**
   * Start that renews the adapter's `login` if the renewal is due. The program then waits, because its stdin stays
   * open.
   */
  readonly renewal?: { readonly args: readonly string[]; readonly input: string };
}

/** Private folder (0700) for each process, removed with it. All paths are relative to the folder. */
export interface PrivateHome {
  /** Environment variables that name subfolders, which are created: `{ HOME: '.', CLI_HOME: '.cli' }`. */
  readonly variables: Readonly<Record<string, string>>;
  /** Files to create before the start, with mode 0600. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  /** Symbolic links to files of the operator (absolute paths); a link is left out if its file does not exist. */
  readonly links: readonly { readonly path: string; readonly to: string }[];
}

/**
 * Content of a login file: when its token expires, in milliseconds since the epoch, or `ended` if it has no tokens
 * left.
 */
export type StoredLogin = { readonly expiresAt: number } | 'ended';

/**
 * Login in files, with a short-lived token that the program renews itself. A renewal spends the stored secret: if the
 * program is killed before it has stored the new secret, the login is lost.
 */
export interface FileLogin {
  /** Absolute path of the file with the tokens. */
  readonly path: string;
  /** Parses the text of the file; returns null if it holds no such login. */
  read(text: string): StoredLogin | null;
  /** Remaining validity, in milliseconds, below which every start of the program renews the token. */
  readonly renewedBeforeMs: number;
  /** Folder that exists during a renewal. The program updates its modification time. */
  readonly lock: string;
  /** Time without an update, in milliseconds, after which a lock counts as abandoned. */
  readonly lockStaleMs: number;
  /** Absolute path of a file that names the process with the lock. Older versions of the program do not write it. */
  readonly lockOwner: string;
  /**
   * Returns the process with the lock, and the creation time of the lock in milliseconds since the epoch; null if the
   * text does not name them.
   */
  readOwner(text: string): { readonly pid: number; readonly lockBornAt: number } | null;
}

/** Pure translation between the relay and one kind of model CLI. An adapter starts nothing and owns nothing. */
export interface Adapter {
  readonly name: string;
  /** Vendor of the models, as OpenTelemetry's `gen_ai.provider.name` spells it; the name of the adapter if absent. */
  readonly provider?: string;
  readonly command: readonly [program: string, ...args: string[]];
  /** Environment variable from which the program reads its credential; null if it reads none. */
  readonly credentialVariable: string | null;
  /** Environment variables for every start of the program. Variables that the operator allows override them. */
  readonly env: Readonly<Record<string, string>>;
  /** Port at which programs send requests to the relay; absent if none does. */
  readonly callbacks?: CallbackPort;
  /** Private folder for the files that the program writes. If absent, the program writes to the HOME of the service. */
  readonly home?: PrivateHome;
  /** Variables with which the program uses the login in its HOME; none if absent, null if it has no login there. */
  readonly homeLogin?: Readonly<Record<string, string>> | null;
  /** How the operator can give it a login in its HOME, if `homeLogin` is null. */
  readonly homeLoginAdvice?: string;
  /** Folder with an administrator's settings for all users of the program; absent if none is known. */
  readonly hostFolder?: string;
  /** Login that the program renews itself; absent if the program gets a permanent credential or needs no login. */
  readonly login?: FileLogin;
  /** Models that a request may name, the default first; null if only the program knows them. */
  readonly models: readonly string[] | null;
  /** Names of this form are models of the program, listed or not. An alias does not replace them. */
  readonly modelForm?: RegExp;
  /** Short names, each of which stands for a model with this word in its full name. */
  readonly shortNames?: readonly string[];
  /** Whether the program has no default model, so that a request must name one. */
  readonly needsModel?: boolean;
  /** Whether the program reports the cost of each answer, so that keys may have a limit in dollars. */
  readonly reportsCost?: boolean;
  /** Learns version and flags by running the program. Called once for each program file. */
  learn(consult: Consult): Promise<ProgramVersion>;
}

export const unknownUsage: Usage = {
  inputTokens: null,
  outputTokens: null,
  costUsd: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
};

/** Adds the usage of two turns. A sum is null if either count is. */
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

/** Returns the failure of a turn whose program exited before the turn ended. */
export function crashed({ code, signal, stderr }: Exit): TurnFailed {
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  const lastOutput = stderr.trim();
  return {
    type: 'turn-failed',
    reason: 'crashed',
    message: `the model CLI ${how}`,
    ...(lastOutput !== '' && { stderr: lastOutput }),
  };
}
