import {
  crashed,
  type Decoder,
  type DecoderEvent,
  type Exit,
  type StdinReply,
  type Turn,
  type TurnFailed,
  type TurnInput,
  type TurnWriter,
} from '../adapter.js';
import { errorOf, failedBy, failure, otherVersion } from './acp-failure.js';
import {
  initialize,
  initialized,
  newSession,
  protocolVersion,
  type SessionMade,
  sessionMade,
  sessionUpdated,
} from './acp-lines.js';
import { currentModel, modelRequest } from './acp-models.js';
import { promptBlocks } from './acp-prompt.js';
import { refused } from './acp-requests.js';
import { AcpTurn } from './acp-turn.js';
import { type RpcError, type RpcId, type RpcMessage, rpcMessage, rpcRequest } from './json-rpc.js';
import { LineSplitter } from './lines.js';

/** UTF-16 units. An update may hold what a tool has read. */
const maxLineLength = 64 * 1024 * 1024;

/** `initializing`, `creating`: the agent has yet to answer that request. */
type SessionState =
  | { readonly name: 'initializing'; readonly workingDirectory: string }
  | { readonly name: 'creating' }
  | { readonly name: 'open'; readonly session: SessionMade }
  | { readonly name: 'failed'; readonly failure: TurnFailed };

/** `held`: the session is not open yet. `choosing`: the agent has yet to take the model. `asked`: it is at the prompt. */
type AskedState =
  | { readonly name: 'none' }
  | { readonly name: 'held'; readonly told: Turn; readonly number: number }
  | { readonly name: 'choosing'; readonly told: Turn; readonly number: number; readonly id: RpcId }
  | { readonly name: 'asked'; readonly told: Turn; readonly turn: AcpTurn; readonly id: RpcId };

const noTurn: AskedState = { name: 'none' };
const initializing = 0;
const creating = 1;
const ignored: readonly DecoderEvent[] = [{ type: 'text-ignored' }];

/** Owns the session with one agent: how far it is open, and which turn it is at. */
export class AcpSession implements TurnWriter, Decoder<DecoderEvent> {
  /** Whether a model is chosen by a request: else the arguments of the agent have it. */
  readonly #choosesModel: boolean;
  readonly #lines = new LineSplitter(maxLineLength);
  #state: SessionState = { name: 'initializing', workingDirectory: '/' };
  #turn: AskedState = noTurn;
  #lastId = creating;
  #hasPrompted = false;
  #model: string | null = null;
  #spentUsd = 0;

  constructor(choosesModel: boolean) {
    this.#choosesModel = choosesModel;
  }

  get hasBegun(): boolean {
    return this.#turn.name === 'asked' && this.#turn.turn.hasBegun;
  }

  open(workingDirectory: string): string {
    this.#state = { name: 'initializing', workingDirectory };
    return rpcRequest(initializing, ...initialize);
  }

  write(told: Turn, number: number): TurnInput {
    if (this.#state.name === 'failed') throw errorOf(this.#state.failure);
    this.#turn = { name: 'held', told, number };
    if (this.#state.name !== 'open') return { text: '', stdin: 'keep-open' };
    const next = this.#next(told, number, this.#state.session);
    if (next.type === 'turn-failed') throw errorOf(next);
    return { text: next.text, stdin: 'keep-open' };
  }

  /** Not a generator: a reader that stops at the end of a turn would lose the lines after it. */
  read(chunk: string): readonly DecoderEvent[] {
    return Array.from(this.#lines.split(chunk)).flatMap((line) => this.#eventsOf(rpcMessage(line)));
  }

  exit(exit: Exit): readonly DecoderEvent[] {
    const last = this.read('\n'); // the last line may have come without a newline
    const ended = last.some(({ type }) => type === 'turn-end' || type === 'turn-failed');
    return ended ? last : [...last, crashed(exit)];
  }

  #eventsOf(message: RpcMessage | null): readonly DecoderEvent[] {
    if (message === null) return [];
    if (message.type === 'request') return refused(message);
    if (message.type === 'notification') return this.#noticed(message.method, message.params);
    if (message.type === 'error') return this.#isAwaited(message.id) ? [this.#refused(message.error)] : [];
    return this.#isAwaited(message.id) ? this.#answered(message.result) : [];
  }

  #refused(error: RpcError): TurnFailed {
    if (this.#state.name !== 'open') return this.#fail(failedBy(error, 'opening', this.#startedFor));
    if (this.#turn.name === 'choosing') return this.#fail(failedBy(error, 'choosing', this.#turn.told));
    return this.#fail(failedBy(error, 'asked', this.#turn.name === 'asked' ? this.#turn.told : null));
  }

  /** The turn whose model is in the arguments of the agent; null where the agent was started for any. */
  get #startedFor(): Turn | null {
    return this.#turn.name === 'held' && !this.#choosesModel ? this.#turn.told : null;
  }

  /** Whether this is the answer to what the agent was asked last. */
  #isAwaited(id: RpcId | null): boolean {
    if (this.#state.name === 'initializing') return id === initializing;
    if (this.#state.name === 'creating') return id === creating;
    return (this.#turn.name === 'choosing' || this.#turn.name === 'asked') && this.#turn.id === id;
  }

  #answered(result: unknown): readonly DecoderEvent[] {
    if (this.#state.name === 'initializing') return this.#initialized(result, this.#state.workingDirectory);
    if (this.#state.name === 'creating') return this.#created(result);
    if (this.#turn.name === 'choosing') return this.#chosen(this.#turn);
    if (this.#turn.name !== 'asked') return [];
    const end = this.#turn.turn.end(result);
    this.#spentUsd = this.#turn.turn.spentUsd;
    this.#turn = noTurn;
    return [end];
  }

  #initialized(result: unknown, workingDirectory: string): readonly DecoderEvent[] {
    const { data } = initialized.safeParse(result);
    if (data === undefined) return [this.#fail(failure('other', 'the model CLI says nothing of its protocol'))];
    if (data.protocolVersion !== protocolVersion) return [this.#fail(otherVersion(data.protocolVersion))];
    this.#state = { name: 'creating' };
    return [reply(rpcRequest(creating, ...newSession(workingDirectory)))];
  }

  #created(result: unknown): readonly DecoderEvent[] {
    const { data: session } = sessionMade.safeParse(result);
    if (session === undefined) return [this.#fail(failure('other', 'the model CLI opened no session'))];
    this.#state = { name: 'open', session };
    this.#model = currentModel(session);
    return this.#turn.name === 'held' ? [this.#next(this.#turn.told, this.#turn.number, session)] : [];
  }

  /** The model of a process never changes after its first turn. */
  #next(told: Turn, number: number, session: SessionMade): StdinReply | TurnFailed {
    if (!this.#choosesModel || number > 1 || told.model === null) return this.#prompt(told, number, session);
    const choice = modelRequest(session, told.model);
    if (choice === null) return this.#fail(failure('model_unknown', 'the model CLI lets nobody choose its model'));
    const id = ++this.#lastId;
    this.#turn = { name: 'choosing', told, number, id };
    return reply(rpcRequest(id, choice.method, choice.params));
  }

  #chosen({ told, number }: Extract<AskedState, { readonly name: 'choosing' }>): readonly DecoderEvent[] {
    this.#model = told.model;
    return this.#state.name === 'open' ? [this.#prompt(told, number, this.#state.session)] : [];
  }

  #prompt(told: Turn, number: number, { sessionId }: SessionMade): StdinReply {
    const id = ++this.#lastId;
    this.#turn = { name: 'asked', told, turn: new AcpTurn(told.model ?? this.#model, this.#spentUsd), id };
    this.#hasPrompted = true;
    return reply(rpcRequest(id, 'session/prompt', { sessionId, prompt: promptBlocks(told, number === 1) }));
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

  /** A session that could not be opened serves no turn; any other turn may be followed by a next one. */
  #fail(failed: TurnFailed): TurnFailed {
    if (this.#state.name !== 'open') this.#state = { name: 'failed', failure: failed };
    this.#turn = noTurn;
    return failed;
  }
}

function reply(text: string): StdinReply {
  return { type: 'reply', text };
}
