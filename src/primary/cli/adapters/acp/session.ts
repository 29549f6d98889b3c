import {
  type Decoder,
  type DecoderEvent,
  type Exit,
  type Image,
  type StdinReply,
  type Turn,
  type TurnEvent,
  type TurnFailed,
  type TurnInput,
  type TurnWriter,
  type Usage,
  unknownUsage,
} from '../../contract/adapter.js';
import { turnFailed } from '../common/failure.js';
import {
  type RpcAnswer,
  type RpcError,
  type RpcId,
  type RpcMessage,
  rpcMessage,
  rpcRequest,
} from '../common/json-rpc.js';
import { JsonLines } from '../common/lines.js';
import { furtherPieces, type PromptPiece, promptPieces } from '../common/transcript.js';
import { currentModel, modelRequest } from './choices.js';
import {
  type PromptEnded,
  promptEnded,
  refused,
  type SessionMade,
  type SessionUpdate,
  sessionUpdated,
} from './lines.js';
import {
  type AcpLogin,
  AcpOpening,
  errorOf,
  failedBy,
  type OpeningFailure,
  type OpeningSettings,
  unauthenticated,
} from './opening.js';

interface OpenState {
  readonly name: 'open';
  readonly session: SessionMade;
  readonly login: AcpLogin;
}

type SessionState =
  | { readonly name: 'none' }
  | { readonly name: 'opening'; readonly opening: AcpOpening }
  | OpenState
  | { readonly name: 'closed'; readonly failure: OpeningFailure };

interface PendingTurn {
  readonly input: Turn;
  readonly number: number;
}

/**
 * `waiting`: the session is not open yet. `choosing`: the agent has yet to take the model. `asked`: it is at the prompt.
 * `login`: it asked for one then, and has yet to take it.
 */
type AskedState = { readonly name: 'none' } | (PendingTurn & { readonly name: 'waiting' }) | AwaitedState;

type AwaitedState = PendingTurn & { readonly id: RpcId } & (
    | { readonly name: 'choosing' }
    | { readonly name: 'login' }
    | { readonly name: 'asked'; readonly turn: AcpTurn }
  );

const noTurn: AskedState = { name: 'none' };
const ignored: readonly DecoderEvent[] = [{ type: 'text-ignored' }];

/** Owns the session with one agent: how far it is open, and which turn it is at. */
export class AcpSession implements TurnWriter, Decoder<DecoderEvent> {
  /** Whether a model is chosen by a request: else the arguments of the agent have it. */
  readonly #choosesModel: boolean;
  readonly #lines = new JsonLines(rpcMessage, (message) => this.#eventsOf(message));
  readonly read = (chunk: string) => this.#lines.read(chunk);
  readonly exit = (exit: Exit) => this.#lines.exit(exit);
  #state: SessionState = { name: 'none' };
  #turn: AskedState = noTurn;
  #lastId = 0;
  #hasPrompted = false;
  #model: string | null = null;
  #spentUsd = 0;

  constructor(choosesModel: boolean) {
    this.#choosesModel = choosesModel;
  }

  get hasBegun(): boolean {
    return this.#turn.name === 'asked' && this.#turn.turn.hasBegun;
  }

  open(settings: OpeningSettings): string {
    const opening = new AcpOpening(settings);
    this.#state = { name: 'opening', opening };
    return opening.begin();
  }

  write(input: Turn, number: number): TurnInput {
    if (this.#state.name === 'closed') throw errorOf(this.#state.failure(this.#startedFor(input)));
    this.#turn = { name: 'waiting', input, number };
    if (this.#state.name !== 'open') return { text: '', stdin: 'keep-open' };
    const next = this.#next(input, number, this.#state.session);
    if (next.type === 'turn-failed') throw errorOf(next);
    return { text: next.text, stdin: 'keep-open' };
  }

  #eventsOf(message: RpcMessage): readonly DecoderEvent[] {
    if (message.type === 'request') return refused(message);
    if (message.type === 'notification') return this.#noticed(message.method, message.params);
    if (this.#state.name === 'opening') return this.#opened(message, this.#state.opening);
    if (this.#state.name !== 'open' || this.#turn.name === 'none' || this.#turn.name === 'waiting') return [];
    return this.#turn.id === message.id ? [this.#answered(message, this.#turn, this.#state)] : [];
  }

  #opened(answer: RpcAnswer, opening: AcpOpening): readonly DecoderEvent[] {
    const step = opening.take(answer);
    if (step === null || step.type === 'reply') return step === null ? [] : [step];
    const waiting = this.#turn.name === 'waiting' ? this.#turn : null;
    if (step.type === 'closed') {
      this.#state = { name: 'closed', failure: step.failure };
      this.#turn = noTurn;
      return [step.failure(waiting && this.#startedFor(waiting.input))];
    }
    this.#state = { name: 'open', session: step.session, login: opening.login };
    this.#lastId = opening.lastId;
    this.#model = currentModel(step.session);
    return waiting === null ? [] : [this.#next(waiting.input, waiting.number, step.session)];
  }

  /** The turn whose model is in the arguments of the agent; null where the agent was started for any. */
  #startedFor(input: Turn): Turn | null {
    return this.#choosesModel ? null : input;
  }

  /** The model of a process never changes after its first turn. */
  #next(input: Turn, number: number, session: SessionMade): StdinReply | TurnFailed {
    if (!this.#choosesModel || number > 1 || input.model === null) return this.#prompt(input, number, session);
    const choice = modelRequest(session, input.model);
    if (choice === null) return this.#fail(turnFailed('model_unknown', 'the model CLI lets nobody choose its model'));
    const id = ++this.#lastId;
    this.#turn = { name: 'choosing', input, number, id };
    return reply(rpcRequest(id, choice.method, choice.params));
  }

  #prompt(input: Turn, number: number, { sessionId }: SessionMade): StdinReply {
    const id = ++this.#lastId;
    const turn = new AcpTurn(input.model ?? this.#model, this.#spentUsd);
    this.#turn = { name: 'asked', input, number, turn, id };
    this.#hasPrompted = true;
    return reply(rpcRequest(id, 'session/prompt', { sessionId, prompt: promptBlocks(input, number === 1) }));
  }

  #answered(answer: RpcAnswer, asked: AwaitedState, { session, login }: OpenState): DecoderEvent {
    if (answer.type === 'error') return this.#refused(answer.error, asked, login);
    const { input, number } = asked;
    if (asked.name === 'login') return this.#next(input, number, session);
    if (asked.name === 'choosing') {
      this.#model = input.model;
      return this.#prompt(input, number, session);
    }
    const end = asked.turn.end(answer.result);
    this.#spentUsd = asked.turn.spentUsd;
    this.#turn = noTurn;
    return end;
  }

  /** An agent that asks for a login has not begun: it gets the turn again after that. */
  #refused(error: RpcError, { name, input, number }: AwaitedState, login: AcpLogin): StdinReply | TurnFailed {
    const credential = error.code === unauthenticated && !this.hasBegun ? login.take() : null;
    if (credential === null)
      return this.#fail(failedBy(error, name === 'choosing' ? name : 'asked', input, login.ways));
    const id = ++this.#lastId;
    this.#turn = { name: 'login', input, number, id };
    return reply(rpcRequest(id, 'authenticate', credential));
  }

  #noticed(method: string, params: unknown): readonly DecoderEvent[] {
    const { data } = method === 'session/update' ? sessionUpdated.safeParse(params) : { data: undefined };
    if (data === undefined) return [];
    const isText = data.update.sessionUpdate === 'agent_message_chunk';
    if (!this.#hasPrompted) return isText ? ignored : []; // many greet, some seconds after the session is open
    if (this.#state.name !== 'open' || data.sessionId !== this.#state.session.sessionId) return [];
    if (this.#turn.name === 'asked') return this.#turn.turn.read(data.update);
    return isText ? [{ type: 'stray' }] : [];
  }

  /** Any other turn may follow. */
  #fail(failed: TurnFailed): TurnFailed {
    this.#turn = noTurn;
    return failed;
  }
}

function reply(text: string): StdinReply {
  return { type: 'reply', text };
}

/** Owns what is known of one turn while the agent is at it. */
export class AcpTurn {
  readonly #model: string | null;
  #hasBegun = false;
  #hasText = false;
  readonly #spentBeforeUsd: number;
  #spentUsd: number | null = null;

  /** `model`: the one that was asked, as far as is known. `spentUsd`: by the turns before. */
  constructor(model: string | null, spentUsd: number) {
    this.#model = model;
    this.#spentBeforeUsd = spentUsd;
  }

  /** By the session so far, as far as the agent reports it. */
  get spentUsd(): number {
    return this.#spentUsd ?? this.#spentBeforeUsd;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  read(update: SessionUpdate): readonly DecoderEvent[] {
    if (update.sessionUpdate === 'usage_update') {
      if (update.cost?.currency === 'USD') this.#spentUsd = update.cost.amount;
      return [];
    }
    this.#hasBegun = true;
    if (update.sessionUpdate !== 'agent_message_chunk' || update.content.text === '') return [];
    this.#hasText = true;
    return [{ type: 'text-delta', text: update.content.text }];
  }

  /** `result`: the answer to the prompt. */
  end(result: unknown): TurnEvent {
    const ended = promptEnded.safeParse(result).data;
    if (ended === undefined) return turnFailed('other', 'the model CLI ended its turn in a way that is not known');
    const failed = stoppedBy(ended.stopReason, this.#hasText);
    if (failed !== null) return failed;
    const model = ended._meta?.quota?.model_usage?.[0]?.model ?? this.#model;
    const costUsd = this.#spentUsd === null ? null : Math.max(0, this.#spentUsd - this.#spentBeforeUsd);
    return { type: 'turn-end', text: null, model, usage: { ...usageOf(ended), costUsd } };
  }
}

/** Where a turn ends by another word than `end_turn`; null where it is an answer. */
export function stoppedBy(stopReason: string, hasText: boolean): TurnFailed | null {
  if (stopReason === 'refusal') return turnFailed('refused', 'the model declines to answer');
  if (stopReason === 'max_tokens') {
    return hasText
      ? turnFailed('output_too_large', 'the answer is longer than the model may write')
      : turnFailed('prompt_too_long', 'the prompt is too long for the model');
  }
  if (stopReason === 'max_turn_requests')
    return turnFailed('other', 'the model CLI asked its model too often in one turn');
  if (stopReason === 'cancelled') return turnFailed('other', 'the model CLI gave up the turn');
  return hasText ? null : turnFailed('empty_answer', 'the model CLI ended its turn without an answer');
}

function usageOf({ usage, _meta }: PromptEnded): Usage {
  const counted = _meta?.quota?.token_count;
  if (!usage && counted === undefined) return unknownUsage;
  if (!usage)
    return {
      ...unknownUsage,
      inputTokens: counted?.input_tokens ?? null,
      outputTokens: counted?.output_tokens ?? null,
    };
  const { inputTokens, outputTokens, cachedReadTokens: read = null, cachedWriteTokens: written = null } = usage;
  const cached = { cacheReadTokens: read, cacheWriteTokens: written };
  return { ...unknownUsage, ...cached, inputTokens: inputTokens + (read ?? 0) + (written ?? 0), outputTokens };
}

/** A content block of a prompt. */
export type PromptBlock = ReturnType<typeof textBlock> | ReturnType<typeof imageBlock>;

/** What agents take for a command of their own where a prompt begins with it, whatever blank stands before. */
const command = /^\s*[/$!]/;

/** Only text that begins with something else is taken for what it is. */
const guard = 'Message:\n';

/**
 * The prompt of a turn. The protocol has no place for a system text and a history, so these stand in front
 * of the first message.
 */
export function promptBlocks(turn: Turn, isFirst: boolean): readonly PromptBlock[] {
  const pieces = joined(isFirst ? promptPieces(turn) : furtherPieces(turn));
  const first = pieces.find((piece) => typeof piece === 'string');
  return pieces.map((piece) => {
    if (typeof piece !== 'string') return imageBlock(piece);
    return textBlock(piece === first && command.test(piece) ? guard + piece : piece);
  });
}

/** With no empty texts, and none beside another. */
function joined(pieces: readonly PromptPiece[]): readonly PromptPiece[] {
  const whole: PromptPiece[] = [];
  for (const piece of pieces.filter((piece) => piece !== '')) {
    const last = whole.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') whole[whole.length - 1] = last + piece;
    else whole.push(piece);
  }
  return whole;
}

function textBlock(text: string) {
  return { type: 'text', text } as const;
}

export function imageBlock({ mediaType, data }: Image) {
  return { type: 'image', mimeType: mediaType, data } as const;
}
