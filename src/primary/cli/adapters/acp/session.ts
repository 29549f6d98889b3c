import type {
  Decoder,
  DecoderEvent,
  Exit,
  StdinReply,
  Turn,
  TurnFailed,
  TurnInput,
  TurnWriter,
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
import { currentModel, modelRequest } from './choices.js';
import { errorOf, failedBy, unauthenticated } from './failure.js';
import { refused, type SessionMade, sessionUpdated } from './lines.js';
import { type AcpLogin, AcpOpening, type OpeningFailure, type OpeningSettings } from './opening.js';
import { AcpTurn, promptBlocks } from './turn.js';

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

interface ToldTurn {
  readonly told: Turn;
  readonly number: number;
}

/**
 * `held`: the session is not open yet. `choosing`: the agent has yet to take the model. `asked`: it is at the prompt.
 * `login`: it asked for one then, and has yet to take it.
 */
type AskedState = { readonly name: 'none' } | (ToldTurn & { readonly name: 'held' }) | AwaitedState;

type AwaitedState = ToldTurn & { readonly id: RpcId } & (
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

  write(told: Turn, number: number): TurnInput {
    if (this.#state.name === 'closed') throw errorOf(this.#state.failure(this.#startedFor(told)));
    this.#turn = { name: 'held', told, number };
    if (this.#state.name !== 'open') return { text: '', stdin: 'keep-open' };
    const next = this.#next(told, number, this.#state.session);
    if (next.type === 'turn-failed') throw errorOf(next);
    return { text: next.text, stdin: 'keep-open' };
  }

  #eventsOf(message: RpcMessage): readonly DecoderEvent[] {
    if (message.type === 'request') return refused(message);
    if (message.type === 'notification') return this.#noticed(message.method, message.params);
    if (this.#state.name === 'opening') return this.#opened(message, this.#state.opening);
    if (this.#state.name !== 'open' || this.#turn.name === 'none' || this.#turn.name === 'held') return [];
    return this.#turn.id === message.id ? [this.#answered(message, this.#turn, this.#state)] : [];
  }

  #opened(answer: RpcAnswer, opening: AcpOpening): readonly DecoderEvent[] {
    const step = opening.take(answer);
    if (step === null || step.type === 'reply') return step === null ? [] : [step];
    const held = this.#turn.name === 'held' ? this.#turn : null;
    if (step.type === 'closed') {
      this.#state = { name: 'closed', failure: step.failure };
      this.#turn = noTurn;
      return [step.failure(held && this.#startedFor(held.told))];
    }
    this.#state = { name: 'open', session: step.session, login: opening.login };
    this.#lastId = opening.lastId;
    this.#model = currentModel(step.session);
    return held === null ? [] : [this.#next(held.told, held.number, step.session)];
  }

  /** The turn whose model is in the arguments of the agent; null where the agent was started for any. */
  #startedFor(told: Turn): Turn | null {
    return this.#choosesModel ? null : told;
  }

  /** The model of a process never changes after its first turn. */
  #next(told: Turn, number: number, session: SessionMade): StdinReply | TurnFailed {
    if (!this.#choosesModel || number > 1 || told.model === null) return this.#prompt(told, number, session);
    const choice = modelRequest(session, told.model);
    if (choice === null) return this.#fail(turnFailed('model_unknown', 'the model CLI lets nobody choose its model'));
    const id = ++this.#lastId;
    this.#turn = { name: 'choosing', told, number, id };
    return reply(rpcRequest(id, choice.method, choice.params));
  }

  #prompt(told: Turn, number: number, { sessionId }: SessionMade): StdinReply {
    const id = ++this.#lastId;
    const turn = new AcpTurn(told.model ?? this.#model, this.#spentUsd);
    this.#turn = { name: 'asked', told, number, turn, id };
    this.#hasPrompted = true;
    return reply(rpcRequest(id, 'session/prompt', { sessionId, prompt: promptBlocks(told, number === 1) }));
  }

  #answered(answer: RpcAnswer, asked: AwaitedState, { session, login }: OpenState): DecoderEvent {
    if (answer.type === 'error') return this.#refused(answer.error, asked, login);
    const { told, number } = asked;
    if (asked.name === 'login') return this.#next(told, number, session);
    if (asked.name === 'choosing') {
      this.#model = told.model;
      return this.#prompt(told, number, session);
    }
    const end = asked.turn.end(answer.result);
    this.#spentUsd = asked.turn.spentUsd;
    this.#turn = noTurn;
    return end;
  }

  /** An agent that asks for a login has not begun: it is told the turn again once it has that. */
  #refused(error: RpcError, { name, told, number }: AwaitedState, login: AcpLogin): StdinReply | TurnFailed {
    const credential = error.code === unauthenticated && !this.hasBegun ? login.take() : null;
    if (credential === null) return this.#fail(failedBy(error, name === 'choosing' ? name : 'asked', told, login.ways));
    const id = ++this.#lastId;
    this.#turn = { name: 'login', told, number, id };
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
