import { opening, turnFailed } from '../../primary/cli/adapters/common/failure.js';
import { JsonLines } from '../../primary/cli/adapters/common/lines.js';
import { furtherPieces, type PromptPiece, promptPieces } from '../../primary/cli/adapters/common/transcript.js';
import type {
  Decoder,
  DecoderEvent,
  Exit,
  Image,
  StdinReply,
  Turn,
  TurnFailed,
  TurnInput,
  TurnWriter,
} from '../../primary/cli/contract/adapter.js';
import { unknownUsage } from '../../primary/cli/contract/adapter.js';
import type { Callback, CallbackRequest } from '../../primary/cli/contract/callbacks.js';
import {
  type RpcAnswer,
  type RpcError,
  type RpcId,
  type RpcMessage,
  rpcMessage,
  rpcRequest,
} from '../protocols/json-rpc.js';
import type { AgentTools } from './agent-tools.js';
import { currentModel, modelRequest } from './choices.js';
import { refused, type SessionMade, sessionUpdated } from './lines.js';
import {
  type AcpLogin,
  AcpOpening,
  errorOf,
  failedBy,
  type OpeningFailure,
  type OpeningSettings,
  unauthenticated,
} from './opening.js';
import { AcpTurn } from './turn.js';

interface OpenState {
  readonly name: 'open';
  readonly session: SessionMade;
  readonly opening: AcpOpening;
}

type SessionState =
  | { readonly name: 'none' }
  | { readonly name: 'opening'; readonly opening: AcpOpening }
  | OpenState
  | { readonly name: 'closed'; readonly failure: OpeningFailure };

/**
 * State of the turn. `waiting`: the session is not open yet. `choosing`: the agent has not accepted the model yet.
 * `asked`: the agent works on the prompt. `login`: the agent required a login at the prompt, and has not accepted it
 * yet. `held`: the prompt is open, and the agent waits for the result of a call. `renewing`: no turn, but another session is
 * being opened for the next question.
 */
type AskedState =
  | { readonly name: 'none' | 'renewing' }
  | { readonly name: 'waiting'; readonly input: Turn }
  | AwaitedState
  | { readonly name: 'held'; readonly turn: AcpTurn; readonly id: RpcId };

type AwaitedState = { readonly input: Turn; readonly id: RpcId } & (
  | { readonly name: 'choosing' }
  | { readonly name: 'login' }
  | { readonly name: 'asked'; readonly turn: AcpTurn }
);

const noTurn: AskedState = { name: 'none' };
const ignored: readonly DecoderEvent[] = [{ type: 'text-ignored' }];
const unexpectedOutput: readonly DecoderEvent[] = [{ type: 'stray' }];

/** Owns the session with one agent: the state of its opening, and the current turn. */
export class AcpSession implements TurnWriter, Decoder<DecoderEvent> {
  /** Whether a request sets the model. If not, the agent's arguments contain it. */
  readonly #choosesModel: boolean;
  readonly #lines = new JsonLines(rpcMessage, (message) => this.#eventsOf(message));
  readonly read = (chunk: string) => this.#lines.read(chunk);
  readonly exit = (exit: Exit) => this.#lines.exit(exit);
  /** Handles callback requests; present only if the agent calls the client's tools. */
  readonly requested?: (request: CallbackRequest) => readonly DecoderEvent[];
  readonly #tools: AgentTools | null;
  #callback: Callback | null = null;
  /** Whether the session has tools of a client. */
  #hasTools = false;
  #state: SessionState = { name: 'none' };
  #turn: AskedState = noTurn;
  #lastId = 0;
  /** Turns of this session so far. */
  #turns = 0;
  #hasPrompted = false;
  #model: string | null = null;
  #spentUsd = 0;
  /** Ids of the sessions of earlier questions. */
  readonly #earlierSessions = new Set<string>();
  /** Whether the agent has run a tool of its own, which could leave something behind. */
  #hasRunTools = false;

  constructor(choosesModel: boolean, tools: AgentTools | null) {
    this.#choosesModel = choosesModel;
    this.#tools = tools;
    if (tools !== null) this.requested = (request) => [...tools.requested(request, this.#mayCall), ...this.#nextCall()];
  }

  get hasBegun(): boolean {
    return this.#turn.name === 'asked' && this.#turn.turn.hasBegun;
  }

  get awaited() {
    if (this.#turn.name === 'waiting' && this.#state.name === 'opening')
      return opening(this.#state.opening.awaitedMethod);
    if (this.#turn.name === 'choosing') return opening('model');
    return this.#turn.name === 'login' ? opening('authenticate') : null;
  }

  get #mayCall(): boolean {
    return this.#turn.name === 'asked' || this.#turn.name === 'held';
  }

  openSession(settings: OpeningSettings, callback: Callback | null): string {
    const opening = new AcpOpening(settings);
    this.#state = { name: 'opening', opening };
    this.#callback = callback;
    return opening.firstRequest();
  }

  write(input: Turn): TurnInput {
    if (this.#state.name === 'closed') throw errorOf(this.#state.failure(this.#startedFor(input)));
    if (this.#turn.name === 'held' && input.results !== undefined) return this.#resume(input, this.#turn);
    const isHeld = this.#turn.name === 'held';
    this.#turns++;
    this.#turn = { name: 'waiting', input };
    if (this.#state.name !== 'open') return { text: '', stdin: 'keep-open' };
    const next = isHeld ? this.#another(input, this.#state) : this.#next(input, this.#state);
    if (next.type === 'turn-failed') throw errorOf(next);
    return { text: next.text, stdin: 'keep-open' };
  }

  /** Returns the request for another session, in which the next question runs. */
  renew(): TurnInput | null {
    if (this.#state.name !== 'open' || this.#turn.name !== 'none' || this.#hasRunTools) return null;
    const { opening, session } = this.#state;
    this.#earlierSessions.add(session.sessionId);
    this.#turn = { name: 'renewing' };
    return { text: this.#openAnother(opening, []), stdin: 'keep-open' };
  }

  /** Passes the results of the previous round to the agent, which waits for them. */
  #resume(input: Turn, { turn, id }: Extract<AskedState, { readonly name: 'held' }>): TurnInput {
    turn.resume();
    this.#turn = { name: 'asked', input, turn, id };
    this.#tools?.answer(input.results ?? []);
    return { text: '', stdin: 'keep-open' };
  }

  #eventsOf(message: RpcMessage): readonly DecoderEvent[] {
    if (message.type === 'request') return refused(message);
    if (message.type === 'notification') return this.#noticed(message.method, message.params);
    if (this.#state.name === 'opening') return this.#opened(message, this.#state.opening);
    if (this.#state.name !== 'open' || !('id' in this.#turn) || this.#turn.id !== message.id) return [];
    return this.#turn.name === 'held' ? unexpectedOutput : [this.#answered(message, this.#turn, this.#state)];
  }

  #opened(answer: RpcAnswer, opening: AcpOpening): readonly DecoderEvent[] {
    const step = opening.readAnswer(answer);
    if (step === null || step.type === 'reply') return step === null ? [] : [step];
    const waiting = this.#turn.name === 'waiting' ? this.#turn : null;
    if (this.#turn.name === 'renewing' && step.type === 'open') return this.#renewed(step.session, opening);
    if (step.type === 'closed') {
      this.#state = { name: 'closed', failure: step.failure };
      this.#turn = noTurn;
      return [step.failure(waiting && this.#startedFor(waiting.input))];
    }
    this.#isOpen(step.session, opening);
    if (this.#hasTools && this.#tools?.isListed !== true) return [this.#fail(notListed)];
    return waiting === null ? [] : [this.#next(waiting.input, { name: 'open', session: step.session, opening })];
  }

  #isOpen(session: SessionMade, opening: AcpOpening): void {
    this.#state = { name: 'open', session, opening };
    this.#lastId = opening.lastId;
    this.#model = currentModel(session);
  }

  #renewed(session: SessionMade, opening: AcpOpening): readonly DecoderEvent[] {
    this.#isOpen(session, opening);
    this.#turn = noTurn;
    if (this.#earlierSessions.has(session.sessionId)) return unexpectedOutput;
    return [{ type: 'turn-end', text: null, model: null, usage: unknownUsage }];
  }

  /** Returns the turn if the agent was started with its model; null if it was started for any model. */
  #startedFor(input: Turn): Turn | null {
    return this.#choosesModel ? null : input;
  }

  /** Starts a turn. The model of a session never changes after its first turn. */
  #next(input: Turn, state: OpenState): StdinReply | TurnFailed {
    if (this.#hasTools !== (input.offer !== undefined)) return this.#another(input, state);
    const { session } = state;
    if (!this.#choosesModel || this.#turns > 1 || input.model === null) return this.#prompt(input, session);
    const choice = modelRequest(session, input.model);
    if (choice === null)
      return this.#fail(turnFailed('model_unknown', 'the model CLI does not let clients choose its model'));
    const id = ++this.#lastId;
    this.#turn = { name: 'choosing', input, id };
    return reply(rpcRequest(id, choice.method, choice.params));
  }

  /**
   * Opens another session, because a session keeps its tools. The new session gets the earlier messages as a
   * transcript.
   */
  #another({ heard = [], history, ...input }: Turn, { opening }: OpenState): StdinReply {
    const { offer } = input;
    const server = offer && this.#callback && this.#tools?.introduce(offer.tools, this.#callback);
    const text = this.#openAnother(opening, server ? [server] : []);
    this.#hasTools = offer !== undefined;
    this.#turns = 1;
    this.#turn = { name: 'waiting', input: { ...input, history: [...heard, ...history] } };
    return reply(text);
  }

  #openAnother(opening: AcpOpening, servers: Parameters<AcpOpening['another']>[1]): string {
    this.#hasTools = false;
    this.#turns = 0;
    this.#hasPrompted = false;
    this.#spentUsd = 0;
    this.#state = { name: 'opening', opening };
    return opening.another(this.#lastId, servers);
  }

  #prompt(input: Turn, { sessionId }: SessionMade): StdinReply {
    const id = ++this.#lastId;
    const turn = new AcpTurn(input.model ?? this.#model, this.#spentUsd);
    const prompt = promptBlocks(input, this.#turns === 1);
    this.#turn = { name: 'asked', input, turn, id };
    this.#hasPrompted = true;
    return reply(rpcRequest(id, 'session/prompt', { sessionId, prompt }));
  }

  /**
   * Returns the next call for the client once the agent has also reported it on stdout: all text before the call has
   * then been read.
   */
  #nextCall(): readonly DecoderEvent[] {
    if (this.#turn.name !== 'asked' || !this.#turn.turn.isCalling) return [];
    const { turn, id } = this.#turn;
    const call = this.#tools?.next() ?? null;
    if (call === null) return [];
    this.#turn = { name: 'held', turn, id }; // without the input, so that a waiting process holds no images
    return turn.endRound(call);
  }

  #answered(answer: RpcAnswer, awaited: AwaitedState, state: OpenState): DecoderEvent {
    if (answer.type === 'error') return this.#refused(answer.error, awaited, state.opening.login);
    const { input } = awaited;
    if (awaited.name === 'login') return this.#next(input, state);
    if (awaited.name === 'choosing') {
      this.#model = input.model;
      return this.#prompt(input, state.session);
    }
    const end = awaited.turn.endTurn(answer.result);
    this.#spentUsd = awaited.turn.spentUsd;
    this.#turn = noTurn;
    return end;
  }

  /** Handles an error. An agent that requires a login has not begun, so the turn is sent again after the login. */
  #refused(error: RpcError, { name, input }: AwaitedState, login: AcpLogin): StdinReply | TurnFailed {
    const credential = error.code === unauthenticated && !this.hasBegun ? login.chooseMethod() : null;
    if (credential === null)
      return this.#fail(failedBy(error, name === 'choosing' ? name : 'asked', input, login.ways));
    const id = ++this.#lastId;
    this.#turn = { name: 'login', input, id };
    return reply(rpcRequest(id, 'authenticate', credential));
  }

  #noticed(method: string, params: unknown): readonly DecoderEvent[] {
    const { data } = method === 'session/update' ? sessionUpdated.safeParse(params) : { data: undefined };
    if (data === undefined) return [];
    const isText = data.update.sessionUpdate === 'agent_message_chunk';
    if (this.#earlierSessions.has(data.sessionId)) return isText ? unexpectedOutput : [];
    if (!this.#hasTools && data.update.sessionUpdate.startsWith('tool_call')) this.#hasRunTools = true;
    if (!this.#hasPrompted) return isText ? ignored : []; // many agents greet some seconds after the session is open
    if (this.#state.name !== 'open' || data.sessionId !== this.#state.session.sessionId) return [];
    if (this.#turn.name === 'asked') return [...this.#turn.turn.readUpdate(data.update), ...this.#nextCall()];
    if (isText) return unexpectedOutput;
    return this.#turn.name === 'held' ? this.#turn.turn.readUpdate(data.update) : [];
  }

  /** Ends the turn; any other turn may follow. */
  #fail(failed: TurnFailed): TurnFailed {
    this.#turn = noTurn;
    return failed;
  }
}

const notListed = turnFailed(
  'other',
  'the model CLI has not requested the tools of this request: if it uses a proxy, NO_PROXY must name 127.0.0.1',
);

function reply(text: string): StdinReply {
  return { type: 'reply', text };
}

/** Content block of a prompt. */
export type PromptBlock = ReturnType<typeof textBlock> | ReturnType<typeof imageBlock>;

/** Beginning of a prompt that agents take for a command, also after blanks. */
const command = /^\s*[/$!]/;

/** Prefix for a prompt that agents would otherwise take for a command. */
const guard = 'Message:\n';

/**
 * Returns the prompt of a turn. The protocol has no field for a system text or a history, so both precede the first
 * message.
 */
export function promptBlocks(turn: Turn, isFirst: boolean): readonly PromptBlock[] {
  const pieces = joined(isFirst ? promptPieces(turn) : furtherPieces(turn));
  const first = pieces.find((piece) => typeof piece === 'string');
  return pieces.map((piece) => {
    if (typeof piece !== 'string') return imageBlock(piece);
    return textBlock(piece === first && command.test(piece) ? guard + piece : piece);
  });
}

/** Drops empty texts and joins adjacent ones. */
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
