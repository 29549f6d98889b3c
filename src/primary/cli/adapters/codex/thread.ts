import { z } from 'zod';
import { cliError } from '../../../../shared/errors.js';
import type { Effort, Turn, TurnInput, TurnWriter } from '../../contract/adapter.js';
import { rpcNotification, rpcRequest } from '../common/json-rpc.js';
import { DynamicTools, inputOf, itemsOf, resultItem } from './input.js';

/** The names of our requests, which the answers repeat. */
export const requestIds = { initialize: 'initialize', thread: 'thread', history: 'history', turn: 'turn' } as const;

/**
 * The thread of one conversation in one process. `none`: there was no turn yet. `starting`: it was asked for, and the turn
 * waits until it is there. `open`: it takes turns. `unsafe`: it is not what was asked for.
 */
type ThreadState =
  | { readonly name: 'none' }
  | { readonly name: 'starting'; readonly turn: Turn }
  | {
      readonly name: 'open';
      readonly id: string;
      readonly model: string;
      readonly effort: Effort | null;
      /** Whether the last turn asked for a text of the thoughts. */
      readonly showsThoughts: boolean;
      readonly asksForValue: boolean;
      readonly hasTools: boolean;
    }
  | { readonly name: 'unsafe' };

/** What the process says of a thread that was started. */
const startedThread = z.object({
  thread: z.object({ id: z.string() }),
  model: z.string(),
  instructionSources: z.array(z.unknown()).catch([]),
  sandbox: z.object({ type: z.string() }),
});

/** For each model its effort where a turn names none. */
export type DefaultEfforts = ReadonlyMap<string, string>;

/** Asked for as soon as the process runs, so that it is ready when the first turn comes. */
export const openingLines = [
  rpcRequest(requestIds.initialize, 'initialize', {
    clientInfo: { name: 'prompt-relay', title: null, version: '1' },
    capabilities: { experimentalApi: true, requestAttestation: false },
  }),
  rpcNotification('initialized'),
].join('');

/** Owns the thread of one codex process, and the settings that it has. */
export class CodexThread implements TurnWriter {
  readonly tools = new DynamicTools();
  readonly #defaultEfforts: DefaultEfforts;
  #state: ThreadState = { name: 'none' };
  #asked: Turn | null = null;

  constructor(defaultEfforts: DefaultEfforts) {
    this.#defaultEfforts = defaultEfforts;
  }

  get id(): string | null {
    return this.#state.name === 'open' ? this.#state.id : null;
  }

  /** The model that answers; null before it is known. */
  get model(): string | null {
    return this.#state.name === 'open' ? this.#state.model : null;
  }

  /** The turn that has no answer yet. */
  get asked(): Turn | null {
    return this.#asked;
  }

  /** The turn has its end: a process that waits holds no images. */
  answered(): void {
    this.#asked = null;
  }

  /** Whether the last turn wants a value for a schema. */
  get asksForValue(): boolean {
    return this.#state.name === 'open' && this.#state.asksForValue;
  }

  write(turn: Turn): TurnInput {
    this.#asked = turn;
    if (this.tools.calls.isWaiting) return { text: this.#resultLines(turn), stdin: 'keep-open' };
    if (this.#state.name === 'open') return { text: this.#next(turn, this.#state), stdin: 'keep-open' };
    if (this.#state.name !== 'none') throw cliError('other', 'the model CLI has no thread for this conversation');
    return { text: this.#begin(turn), stdin: 'keep-open' };
  }

  /** Without them the program would wait for ever. */
  #resultLines({ results }: Turn): string {
    if (results === undefined) throw cliError('other', 'the model CLI waits for the results of its calls');
    return this.tools.calls.answer(results);
  }

  /** The tools of a thread are those that it was started with: a turn with others needs another thread. */
  #next(turn: Turn, { hasTools }: Extract<ThreadState, { readonly name: 'open' }>): string {
    if (hasTools === (turn.offer !== undefined)) return this.#turnLine(turn);
    const { heard = [], history, ...asked } = turn;
    return this.#begin({ ...asked, history: [...heard, ...history] });
  }

  #begin(turn: Turn): string {
    this.#state = { name: 'starting', turn };
    return rpcRequest(requestIds.thread, 'thread/start', this.#threadOf(turn));
  }

  /** The thread is there: returns what to write now, or null where it is not what was asked for. */
  started(result: unknown): string | null {
    const { data } = startedThread.safeParse(result);
    if (this.#state.name !== 'starting') return '';
    const { turn } = this.#state;
    const isSafe = data?.sandbox.type === 'readOnly' && data.instructionSources.length === 0;
    const hasTools = turn.offer !== undefined;
    const settings = { effort: null, showsThoughts: false, asksForValue: false, hasTools };
    this.#state = isSafe ? { name: 'open', id: data.thread.id, model: data.model, ...settings } : { name: 'unsafe' };
    return isSafe ? this.#historyLine(turn) + this.#turnLine(turn) : null;
  }

  /** With results at its end: then the turn has no input of its own. */
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

  /** An effort holds until the next one: a later turn without an effort gets the usual one of its model. */
  #effortOf({ effort, schema }: Turn): string | null {
    if (this.#state.name !== 'open') return effort;
    const { effort: current, model } = this.#state;
    this.#state = { ...this.#state, effort: effort ?? current, asksForValue: schema !== null };
    return effort ?? (current === null ? null : (this.#defaultEfforts.get(model) ?? 'medium'));
  }

  /** It holds until the next one, too. */
  #summaryOf({ thinking }: Turn): string | null {
    if (this.#state.name !== 'open') return null;
    const { showsThoughts: before } = this.#state;
    const showsThoughts = thinking === 'summarized';
    this.#state = { ...this.#state, showsThoughts };
    if (showsThoughts) return 'auto';
    return before ? 'none' : null;
  }

  /** Without an environment there is nothing that a tool could work on; without base instructions, it is no coding agent. */
  #threadOf({ model, system, offer }: Turn): object {
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
