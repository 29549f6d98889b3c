import { z } from 'zod';
import type { Effort, Turn, TurnInput, TurnWriter } from '../../primary/cli/contract/adapter.js';
import type { MessageInput } from '../../primary/cli/contract/awaited-step.js';
import { cliError } from '../../shared/errors.js';
import { type RpcId, rpcNotification, rpcRequest } from '../protocols/json-rpc.js';
import { DynamicTools, inputOf, itemsOf, resultItem } from './input.js';

/** Ids of the relay's requests, which the answers repeat. The ids of a thread's start and end also have its number. */
export const requestIds = { initialize: 'initialize', thread: 'thread', history: 'history', turn: 'turn' } as const;

const endOfThread = 'end of thread';
const unusedThread = 'unused thread';
const interruption = 'interruption';
const addition = 'addition';

/** Settings that a thread has from its start. */
type StartSettings = Pick<Turn, 'model' | 'system' | 'offer'>;

/**
 * State of the thread in one process. `none`: before the first turn. `starting`: requested; the turn waits for it, or none
 * if the thread is started ahead. `open`: accepts turns. `ending`: the program was asked to end it. `unsafe`: differs from
 * the request.
 */
type ThreadState =
  | { readonly name: 'none' }
  | { readonly name: 'starting'; readonly asked: StartSettings; readonly turn: Turn | null }
  | {
      readonly name: 'open';
      readonly id: string;
      readonly asked: StartSettings;
      /** Whether the thread was started ahead, and has had no turn. */
      readonly isUnused: boolean;
      readonly model: string;
      readonly effort: Effort | null;
      /** Whether the last turn requested a summary of thoughts. */
      readonly showsThoughts: boolean;
      readonly asksForValue: boolean;
    }
  | { readonly name: 'ending'; readonly asked: StartSettings }
  | { readonly name: 'unsafe' };

/** Answer to the start of a thread. */
const startedThread = z.object({
  thread: z.object({ id: z.string() }),
  model: z.string(),
  instructionSources: z.array(z.unknown()).catch([]),
  sandbox: z.object({ type: z.string() }),
});

/** Default effort of each model. */
export type DefaultEfforts = ReadonlyMap<string, string>;

/** Whether this is the id of a request that adds a message. */
export function isAddition(id: RpcId | null): boolean {
  return typeof id === 'string' && id.startsWith(`${addition} `);
}

/** Lines sent as soon as the process runs, so that it is ready for its first turn. */
export const openingLines = [
  rpcRequest(requestIds.initialize, 'initialize', {
    clientInfo: { name: 'prompt-relay', title: null, version: '1' },
    capabilities: { experimentalApi: true, requestAttestation: false },
  }),
  rpcNotification('initialized'),
].join('');

/** Owns the thread of one codex process, with its current settings. */
export class CodexThread implements TurnWriter {
  readonly tools = new DynamicTools();
  /** Program's id of its running turn; null between turns. */
  turnId: string | null = null;
  /** Whether a turn is being interrupted. */
  isInterrupting = false;
  /** Whether the model has begun to answer the running turn, beyond its thoughts. */
  hasSaid = false;
  readonly #defaultEfforts: DefaultEfforts;
  #state: ThreadState = { name: 'none' };
  #currentTurn: Turn | null = null;
  /** Ids of all threads so far. */
  readonly #ids = new Set<string>();
  /** Number of threads that were requested. */
  #count = 0;
  /** Number of the thread that was ended last. */
  #endedCount = 0;
  /** Number of interruptions so far. */
  #interruptions = 0;
  /** Number of messages that were added so far. */
  #additions = 0;
  /** Ids of messages that the program has neither given to the model nor refused in this turn. */
  readonly openAdditions = new Set<RpcId>();

  constructor(defaultEfforts: DefaultEfforts) {
    this.#defaultEfforts = defaultEfforts;
  }

  get id(): string | null {
    return this.#state.name === 'open' ? this.#state.id : null;
  }

  /** Model that answers; null before it is known. */
  get model(): string | null {
    return this.#state.name === 'open' ? this.#state.model : null;
  }

  /** Turn without an end; null between turns. */
  get currentTurn(): Turn | null {
    return this.#currentTurn;
  }

  /** Id of the request for the present thread. */
  get startId(): string {
    return `${requestIds.thread} ${this.#count}`;
  }

  /** Id of the request that ends the present thread. */
  get endId(): string {
    return `${endOfThread} ${this.#endedCount}`;
  }

  /** Id of the request that ends the present turn early. */
  get interruptionId(): string {
    return `${interruption} ${this.#interruptions}`;
  }

  /** Whether a thread waits for the next question. */
  get isReady(): boolean {
    return this.#state.name === 'open' && this.#state.isUnused;
  }

  /** Clears the turn at its end, so that an idle process holds no images. */
  answered(): void {
    this.#currentTurn = null;
  }

  /** Whether the last turn requests a value for a schema. */
  get asksForValue(): boolean {
    return this.#state.name === 'open' && this.#state.asksForValue;
  }

  write(turn: Turn): TurnInput {
    this.#currentTurn = turn;
    if (this.tools.calls.isWaiting) return { text: this.#resultLines(turn), stdin: 'keep-open' };
    if (this.#state.name === 'open') return { text: this.#next(turn, this.#state), stdin: 'keep-open' };
    if (this.#state.name !== 'none') throw cliError('other', 'the model CLI has no thread for this conversation');
    return { text: this.#begin(turn), stdin: 'keep-open' };
  }

  /**
   * Adds a message while the model thinks. Measured on 0.171.0: the program then asks the model again, and drops what the
   * model has said, so that a message cannot be added to an answer that has begun. If the answer is complete meanwhile, and
   * always with 0.160.1, the message comes after it.
   */
  add(text: string): MessageInput | null {
    if (this.#state.name !== 'open' || this.turnId === null || this.hasSaid || this.tools.calls.isWaiting) return null;
    const id = `${addition} ${++this.#additions}`;
    const input = inputOf({ text });
    this.openAdditions.add(id);
    const params = { threadId: this.#state.id, expectedTurnId: this.turnId, clientUserMessageId: id, input };
    return { id, input: rpcRequest(id, 'turn/steer', params) };
  }

  /** Returns the request that ends the thread. The next question gets another one, with instructions of its own. */
  renew(): TurnInput | null {
    if (this.#state.name !== 'open' || this.tools.calls.isWaiting) return null;
    const { id, asked } = this.#state;
    this.#state = { name: 'ending', asked };
    this.#endedCount = this.#count;
    return { text: rpcRequest(this.endId, 'thread/unsubscribe', { threadId: id }), stdin: 'keep-open' };
  }

  /**
   * Returns the request that ends the thread. The next turn injects the messages that shall be left into another one: only
   * threads in files can be cut or forked, and these threads are in no file.
   */
  rewind(): TurnInput | null {
    return this.renew();
  }

  /**
   * Returns the request that ends the turn early; if the program has ended the turn itself, a request that it answers at
   * once. A thread with tools may have open calls, so its process must end.
   */
  interrupt(): TurnInput | null {
    if (this.#state.name !== 'open' || this.#state.asked.offer !== undefined) return null;
    const hasTurn = this.turnId !== null;
    if (this.#currentTurn !== null && !hasTurn) return null;
    this.isInterrupting = true;
    this.#interruptions++;
    const [method, params] = hasTurn
      ? (['turn/interrupt', { threadId: this.#state.id, turnId: this.turnId }] as const)
      : (['account/read', {}] as const);
    return { text: rpcRequest(this.interruptionId, method, params), stdin: 'keep-open' };
  }

  /**
   * Handles the answer to the end of the thread. Returns the request that starts the next one ahead, because most
   * questions of a client have the same settings; null if no answer was expected.
   */
  ended(): string | null {
    if (this.#state.name !== 'ending') return null;
    const { model, system } = this.#state.asked;
    return this.#start({ model, system }, null);
  }

  /**
   * Returns the results for the open calls. Throws if the turn has no results, because the program would wait forever.
   */
  #resultLines({ results }: Turn): string {
    if (results === undefined) throw cliError('other', 'the model CLI waits for the results of its calls');
    return this.tools.calls.answer(results);
  }

  /**
   * Continues the thread, or begins the first turn of one that was started ahead. A thread keeps its settings, so a turn
   * that adds or drops tools, and a question with another model or system text, need a new thread.
   */
  #next(turn: Turn, state: Extract<ThreadState, { readonly name: 'open' }>): string {
    const { asked: before, isUnused } = state;
    const isSame = (before.offer !== undefined) === (turn.offer !== undefined);
    if (isUnused) return this.#first(turn, state);
    if (isSame) return this.#turnLine(turn);
    const { heard = [], history, ...asked } = turn;
    return this.#begin({ ...asked, history: [...heard, ...history] });
  }

  #first(turn: Turn, state: Extract<ThreadState, { readonly name: 'open' }>): string {
    const { asked, id } = state;
    this.#state = { ...state, isUnused: false };
    const { heard = [], history, ...input } = turn;
    const whole = { ...input, history: [...heard, ...history] };
    const fits = turn.offer === undefined && asked.model === turn.model && asked.system === turn.system;
    if (fits) return this.#historyLine(whole) + this.#turnLine(whole);
    const end = rpcRequest(`${unusedThread} ${this.#count}`, 'thread/unsubscribe', { threadId: id });
    return end + this.#begin(whole);
  }

  #begin(turn: Turn): string {
    const { model, system, offer } = turn;
    return this.#start({ model, system, ...(offer && { offer }) }, turn);
  }

  #start(asked: StartSettings, turn: Turn | null): string {
    this.#state = { name: 'starting', asked, turn };
    this.#count++;
    return rpcRequest(this.startId, 'thread/start', this.#threadOf(asked));
  }

  /** Handles the started thread. Returns the text to write now, or null if the thread is unsafe. */
  started(result: unknown): string | null {
    const { data } = startedThread.safeParse(result);
    if (this.#state.name !== 'starting') return '';
    const { asked, turn } = this.#state;
    const isNew = data !== undefined && !this.#ids.has(data.thread.id);
    const isSafe = isNew && data.sandbox.type === 'readOnly' && data.instructionSources.length === 0;
    if (isNew) this.#ids.add(data.thread.id);
    const settings = { effort: null, showsThoughts: false, asksForValue: false, asked, isUnused: turn === null };
    this.#state = isSafe ? { name: 'open', id: data.thread.id, model: data.model, ...settings } : { name: 'unsafe' };
    if (!isSafe) return null;
    return turn === null ? '' : this.#historyLine(turn) + this.#turnLine(turn);
  }

  /** Returns the history, with the turn's results at its end; the turn then has no separate input. */
  #historyLine({ history, results = [] }: Turn): string {
    const items = [...history.flatMap(itemsOf), ...results.map(resultItem)];
    if (items.length === 0) return '';
    const params = { threadId: this.id, items };
    return rpcRequest(requestIds.history, 'thread/inject_items', params);
  }

  #turnLine(turn: Turn): string {
    const summary = this.#summaryOf(turn);
    const effort = this.#effortOf(turn);
    return rpcRequest(requestIds.turn, 'turn/start', {
      threadId: this.id,
      input: turn.text === '' && (turn.results ?? []).length > 0 ? [] : inputOf(turn),
      ...(effort !== null && { effort }),
      ...(summary !== null && { summary }),
      ...(turn.schema !== null && { outputSchema: JSON.parse(turn.schema) as unknown }),
    });
  }

  /** Returns the effort to send. It stays in force, so a later turn without an effort sends the model's default. */
  #effortOf({ effort, schema }: Turn): string | null {
    if (this.#state.name !== 'open') return effort;
    const { effort: current, model } = this.#state;
    this.#state = { ...this.#state, effort: effort ?? current, asksForValue: schema !== null };
    return effort ?? (current === null ? null : (this.#defaultEfforts.get(model) ?? 'medium'));
  }

  /** Returns the summary setting to send, which stays in force like the effort. */
  #summaryOf({ thinking }: Turn): string | null {
    if (this.#state.name !== 'open') return null;
    const { showsThoughts: before } = this.#state;
    const showsThoughts = thinking === 'summarized';
    this.#state = { ...this.#state, showsThoughts };
    if (showsThoughts) return 'auto';
    return before ? 'none' : null;
  }

  /**
   * Returns the parameters of a thread. Without environments, tools have nothing to work on; empty base instructions
   * replace the instructions for a coding agent.
   */
  #threadOf({ model, system, offer }: StartSettings): object {
    return {
      ephemeral: true,
      approvalPolicy: 'never',
      sandbox: 'read-only',
      environments: [],
      baseInstructions: '',
      ...(system !== null && { developerInstructions: system }),
      ...(model !== null && { model }),
      ...(offer !== undefined && { dynamicTools: this.tools.introduce(offer.tools), experimentalRawEvents: true }),
    };
  }
}
