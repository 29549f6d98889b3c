import { withResolvers } from '../../../shared/async.js';
import type { Clock } from '../../../shared/clock.js';
import { contained } from '../../../shared/contained.js';
import { cliError, type RelayError, shuttingDown, toRelayError } from '../../../shared/errors.js';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type {
  Decoder,
  Exit,
  LaunchOptions,
  ProgramVersion,
  Protocol,
  RequestKind,
  Turn,
  TurnEnd,
} from '../contract/adapter.js';
import { type CliObserver, type EndReason, endReasonOf, withoutAsides } from '../contract/observer.js';
import type { ProcessTree } from '../terminate/process-tree.js';
import type { CallbackServer, OpenCallback } from './callback-server.js';
import { type Decode, OpenTurn, saysNothing, type TextSink, type TurnLimits } from './open-turn.js';
import { ProgramOutput } from './output.js';
import type { Redactor } from './redactor.js';
import { replayableHistory } from './replay.js';

/** A conversation as a turn finds it. */
export interface ConversationState {
  readonly id: string;
  readonly messageCount: number;
  /** Whose conversation it is. */
  readonly client?: string;
  /** Of the calls that its last message has left open: those that its process waits for, or that the turn brings the results of. */
  readonly openCalls?: readonly string[];
  /** The ids that the program has for its open calls, by those that the client knows. */
  readonly callIds?: ReadonlyMap<string, string> | undefined;
  /** The launch options that its process has for good. */
  readonly launch?: LaunchOptions;
  /** Where it may never be continued. */
  readonly guess?: SessionGuess;
}

/** What a process that has the history already is told, with its own ids of the calls. */
export function continued(turn: Turn, callIds: ReadonlyMap<string, string> = new Map()): Turn {
  const results = turn.results?.map((result) => ({ ...result, id: callIds.get(result.id) ?? result.id }));
  return { ...turn, ...(results && { results }), history: [], heard: replayableHistory(turn.history, callIds) };
}

/**
 * What a request was whose process may wait in vain. `question`: no other request is known to continue it. `side`: it also
 * came close to another request of its client, as those for titles and the like do.
 */
export interface SessionGuess {
  readonly kind: 'question' | 'side' | 'call';
  readonly client: string;
}

/**
 * What a process is doing. `starting`: it is not there yet. `standby`: it waits for its first turn. `busy`: a job has it,
 * before, during or after its turn. `idle`: it waits for the next turn of its conversation. `waiting_for_tools`: it is in
 * the middle of one, and waits for what the client's tools return. `stopping`: it is being ended,
 * perhaps because it has died on standby. `gone`: nothing of it is left.
 */
export type CliState =
  | { readonly name: 'starting'; readonly next: 'standby' | 'busy' }
  | { readonly name: 'standby' }
  | { readonly name: 'busy'; readonly turn: OpenTurn | null; readonly isReusable: boolean }
  | { readonly name: 'idle' | 'waiting_for_tools'; readonly conversation: ConversationState }
  | { readonly name: 'stopping'; readonly hasDied: boolean }
  | { readonly name: 'gone' };

/** From each state to those that may follow. */
export const transitions: Readonly<Record<CliState['name'], readonly CliState['name'][]>> = {
  starting: ['standby', 'busy', 'stopping'],
  standby: ['busy', 'stopping'],
  busy: ['busy', 'idle', 'waiting_for_tools', 'stopping'],
  idle: ['busy', 'stopping'],
  waiting_for_tools: ['busy', 'stopping'],
  stopping: ['gone'],
  gone: [],
};

export interface CliLimits extends TurnLimits {
  /** Between SIGTERM and SIGKILL, milliseconds. */
  readonly graceMs: number;
}

export interface CliProcessParts {
  readonly programVersion: Pick<ProgramVersion, 'protocol'>;
  readonly limits: CliLimits;
  readonly clock: Clock;
  readonly observer: CliObserver;
  /** What the program writes to stderr goes through it. */
  readonly redactor: Pick<Redactor, 'redact'>;
  readonly callbacks: Pick<CallbackServer, 'open'>;
}

/** What a process needs of the tree that it owns. */
export type OwnedTree = Pick<ProcessTree, 'child' | 'hasDied' | 'pause' | 'resume' | 'usage' | 'end'>;

/** A job's processes must be gone within a second of its end, so a program that ignores SIGTERM gets no longer than this. */
const maxJobGraceMs = 400;
/** What a program may ask for in one turn, and be refused. */
const maxRefusals = 100;

/** Owns one model CLI from its start until nothing of it is left, and its one state. */
export class CliProcess {
  readonly startedMs: number;
  readonly #parts: CliProcessParts;
  readonly #protocol: Protocol;
  readonly #decoder: Decoder;
  readonly #onChange: (process: CliProcess) => void;
  #state: CliState;
  #sinceMs: number;
  #tree: Promise<OwnedTree> | null = null;
  #callback: Promise<OpenCallback> | null = null;
  #running: { readonly tree: OwnedTree; readonly output: ProgramOutput } | null = null;
  #exit: Exit | null = null;
  #isPaused = false;
  #turns = 0;
  /** In this turn, or before it. */
  #refusals = 0;
  #reportedMs = 0;
  readonly #gone = withResolvers();
  /** Resolves when nothing of it is left. */
  readonly gone = this.#gone.promise;

  /** `next` is its first state once it has been started. `onChange` is called after each change of its state. */
  constructor(parts: CliProcessParts, next: 'standby' | 'busy', onChange: (process: CliProcess) => void = () => {}) {
    this.#parts = parts;
    this.#state = { name: 'starting', next };
    this.#protocol = parts.programVersion.protocol();
    const reply = (text: string) => {
      if (this.#refusals <= maxRefusals) this.#running?.tree.child.stdin.write(text);
    };
    const requestRefused = (request: RequestKind) => this.#refused(request);
    this.#decoder = withoutAsides(this.#protocol.decoder, { ...parts.observer, reply, requestRefused });
    this.#onChange = onChange;
    this.startedMs = parts.clock.monotonicMs();
    this.#sinceMs = this.startedMs;
  }

  get state(): CliState {
    return this.#state;
  }

  /** Since when it has been in its state, monotonic. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Milliseconds from its start to the first byte that was read of it; null before that. */
  get startupMs(): number | null {
    const firstByteMs = this.#running?.output.firstByteMs ?? null;
    return firstByteMs === null ? null : firstByteMs - this.startedMs;
  }

  /** Takes over a tree that is being started. Rejects as that does, or with `shutting_down` where it was ended before that; then nothing of it is left. */
  async start(tree: Promise<OwnedTree>): Promise<void> {
    this.#tree = tree;
    try {
      this.#callback = this.#protocol.decoder.requested === undefined ? null : this.#openCallback();
      this.#run(...(await Promise.all([tree, this.#callback])));
    } catch (error) {
      await this.end('done');
      throw error;
    }
    if (this.#state.name !== 'starting') throw shuttingDown();
    if (this.#state.next === 'standby') this.#become({ name: 'standby' });
    else this.claim();
  }

  /** Takes it for a job. */
  claim(): void {
    if (this.#state.name === 'busy') throw new Error('a CLI process was claimed twice');
    this.#become({ name: 'busy', turn: null, isReusable: true });
  }

  /** Whether the program lives. Node may not have reported its death yet, and a dead program answers no turn. */
  get isAlive(): boolean {
    return this.#exit === null && this.#running?.tree.hasDied === false;
  }

  /** On standby, stops it until `resume`, or until a job takes it or it is ended. */
  pause(): void {
    if (!this.#isPaused) this.#running?.tree.pause();
    this.#isPaused = true;
  }

  resume(): void {
    if (this.#isPaused) this.#running?.tree.resume();
    this.#isPaused = false;
  }

  /**
   * Gives the program one turn, and passes the text of its answer on to `sink`. Rejects with `cli_error`, `spawn_error`,
   * `timeout` for a program that stays silent, or the signal's reason; then the process is being ended.
   */
  async turn(turn: Turn, sink: TextSink, signal: AbortSignal): Promise<TurnEnd> {
    const { limits, clock } = this.#parts;
    const { tree, output } = this.#running ?? neverStarted();
    if (this.#state.name === 'busy' && this.#state.turn !== null)
      throw new Error('a CLI process has one turn at a time');
    this.#refusals = 0;
    const input = this.#protocol.writer.write(turn, ++this.#turns);
    this.#decoder.begin?.(this.#turns);
    const program = {
      stdin: tree.child.stdin,
      output,
      decoder: this.#decoder,
      onOutOfTurn: () => this.#spokeOutOfTurn(),
    };
    using open = new OpenTurn(program, sink, limits, clock);
    const abort = this.#contained(() => open.fail(signal.reason));
    signal.addEventListener('abort', abort, { once: true });
    this.#become({ name: 'busy', turn: open, isReusable: input.stdin === 'keep-open' });
    try {
      if (signal.aborted) abort();
      else open.begin(input);
      if (this.#exit !== null) open.exited(this.#exit);
      const end = await open.ended;
      if (this.#state.name === 'busy') this.#become({ ...this.#state, turn: null });
      return end;
    } catch (error) {
      void this.end(endReasonOf(toRelayError(error)));
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Leaves it to its conversation after a turn. Returns false where it can't be used again, and must be ended. */
  keepFor(conversation: ConversationState): boolean {
    if (this.#state.name !== 'busy' || !this.#state.isReusable || this.#exit !== null) return false;
    this.#become({ name: conversation.openCalls === undefined ? 'idle' : 'waiting_for_tools', conversation });
    return true;
  }

  /** What was used since the last call; null where that is not measured. */
  takeUsage(): CgroupUsage | null {
    const usage = this.#running?.tree.usage() ?? null;
    if (usage === null) return null;
    const processorMs = Math.round(usage.processorMs - this.#reportedMs);
    this.#reportedMs = usage.processorMs;
    return { ...usage, processorMs };
  }

  /** Ends the program with everything that it has started, with little grace: a slot may wait for it. Resolves when nothing is left. */
  end(reason: EndReason): Promise<void> {
    return this.#stop(reason, Math.min(this.#parts.limits.graceMs, maxJobGraceMs));
  }

  /** As `end`, with the whole grace, where no job waits. */
  retire(): Promise<void> {
    return this.#stop('retired', this.#parts.limits.graceMs);
  }

  #stop(reason: EndReason, graceMs: number, hasDied = false): Promise<void> {
    if (this.#state.name === 'stopping' || this.#state.name === 'gone') return this.gone;
    if (this.#state.name === 'busy') this.#state.turn?.fail(shuttingDown());
    this.#become({ name: 'stopping', hasDied });
    void this.#endTree(reason, graceMs);
    return this.gone;
  }

  async #endTree(reason: EndReason, graceMs: number): Promise<void> {
    const tree = await this.#tree?.catch(() => null);
    await tree?.end(graceMs, reason);
    (await this.#callback?.catch(() => null))?.close(); // sooner, the program would hear of results that are none
    this.#become({ name: 'gone' });
    this.#gone.resolve();
  }

  /** A request that the program gives up leaves it in a state that nobody knows. */
  #openCallback(): Promise<OpenCallback> {
    return this.#parts.callbacks.open({
      requested: this.#contained((request) => this.#read((decoder) => decoder.requested?.(request) ?? [])),
      abandoned: this.#contained(() => this.#spokeOutOfTurn()),
    });
  }

  #run(tree: OwnedTree, callback: OpenCallback | null): void {
    const listener = {
      text: this.#contained((text: string) => this.#read((decoder) => decoder.read(text))),
      end: this.#contained((exit: Exit) => this.#exited(exit)),
    };
    const output = new ProgramOutput(tree.child, listener, this.#parts);
    this.#running = { tree, output };
    const opening = this.#protocol.opening?.(tree.child.workingDirectory, callback);
    if (opening === undefined) return;
    tree.child.stdin.write(opening);
    output.read();
  }

  /** A listener whose exception fails the turn of this process alone. */
  #contained<A extends readonly unknown[]>(listener: (...args: A) => void): (...args: A) => void {
    return contained(listener, (fault) => {
      if (this.#state.name === 'busy' && this.#state.turn !== null) this.#state.turn.fail(fault);
      else void this.end('done');
    });
  }

  #read(decode: Decode): void {
    if (this.#state.name === 'busy' && this.#state.turn !== null) this.#state.turn.read(decode);
    else if (!saysNothing(this.#decoder, decode)) this.#spokeOutOfTurn();
  }

  /** One that asks without end would fill memory with refusals, and the log. */
  #refused(request: RequestKind): void {
    if (++this.#refusals <= maxRefusals) return this.#parts.observer.requestRefused(request);
    if (this.#state.name === 'busy' && this.#state.turn !== null) this.#state.turn.fail(askedTooOften());
    else this.#spokeOutOfTurn();
  }

  /** It has said more than it was asked for: what it says next may enter the answer of a later turn. */
  #spokeOutOfTurn(): void {
    if (this.#state.name !== 'busy') void this.#stop('retired', this.#parts.limits.graceMs, !this.#isOfConversation);
    else if (this.#state.isReusable) this.#become({ ...this.#state, isReusable: false });
  }

  #exited(exit: Exit): void {
    this.#exit = exit;
    if (this.#state.name === 'busy') this.#state.turn?.exited(exit);
    else void this.#stop('retired', this.#parts.limits.graceMs, !this.#isOfConversation);
  }

  get #isOfConversation(): boolean {
    return this.#state.name === 'idle' || this.#state.name === 'waiting_for_tools';
  }

  #become(state: CliState): void {
    const { name } = this.#state;
    if (!transitions[name].includes(state.name))
      throw new Error(`a CLI process can't go from ${name} to ${state.name}`);
    if (name === 'standby') this.resume();
    this.#state = state;
    this.#sinceMs = this.#parts.clock.monotonicMs();
    this.#onChange(this);
  }
}

function askedTooOften(): RelayError {
  return cliError('other', 'the model CLI asked again and again for what it is not given');
}

function neverStarted(): never {
  throw new Error('a CLI process was given a turn before its start');
}
