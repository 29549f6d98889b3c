import { withResolvers } from '../../../shared/async.js';
import type { ClientText } from '../../../shared/client.js';
import type { Clock } from '../../../shared/clock.js';
import { contained } from '../../../shared/contained.js';
import type { Beginning } from '../../../shared/conversation.js';
import { cliError, type RelayError, shuttingDown, toRelayError } from '../../../shared/errors.js';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type {
  Decoder,
  Exit,
  LaunchOptions,
  Message,
  ProgramVersion,
  Protocol,
  RequestKind,
  Turn,
  TurnEnd,
  TurnInput,
} from '../contract/adapter.js';
import type { CallbackPort, OpenCallback } from '../contract/callbacks.js';
import { type CliObserver, type EndReason, endReasonOf, withoutAsides } from '../contract/observer.js';
import type { ProcessTree } from '../terminate/process-tree.js';
import { type Decode, OpenTurn, saysNothing, type TurnLimits, type TurnSink } from './open-turn.js';
import { ProgramOutput } from './output.js';
import { ProgramInput } from './program-input.js';
import type { Redactor } from './redactor.js';
import {
  interruptedAnswer,
  isHarmless,
  noAnswer,
  notRenewed,
  type Proof,
  renewalLimits,
  type Tenant,
} from './renewal.js';
import { replayable, replayableHistory } from './replay.js';

/** State of a conversation before a turn. */
export interface ConversationState {
  readonly id: string;
  readonly messageCount: number;
  /** Client to which the conversation belongs. */
  readonly client?: ClientText;
  /** Ids of the open calls of the last message. The process waits for their results, or the turn brings them. */
  readonly openCalls?: readonly string[];
  /** Ids of the open calls: the client's id maps to the program's. */
  readonly callIds?: ReadonlyMap<string, string> | undefined;
  /** Launch options that the process cannot change any more. */
  readonly launch?: LaunchOptions;
  /** Set if the conversation may never be continued. */
  readonly guess?: SessionGuess;
  /**
   * For a process: the beginnings of its conversation. For a turn without a process: the beginnings with which the process
   * of another conversation may serve it. The longest comes first.
   */
  readonly beginnings?: readonly Beginning[];
  /** Whether only a process with a `guess` may serve the turn, because this service has not answered its history. */
  readonly isUnknown?: boolean;
  /** Returns the messages before a turn; absent for a process. */
  readonly history?: () => readonly Message[];
}

/** Returns the turn for a process that already has the history, with the process's ids of the calls. */
export function continued(turn: Turn, callIds: ReadonlyMap<string, string> = new Map()): Turn {
  const results = turn.results?.map((result) => ({ ...result, id: callIds.get(result.id) ?? result.id }));
  return { ...turn, ...(results && { results }), history: [], heard: replayableHistory(turn.history, callIds) };
}

/** Returns the turn for a process that already has the first `count` messages of its history. */
export function partlyContinued(turn: Turn, count: number): Turn {
  const { history, ...rest } = replayable(turn);
  return { ...rest, heard: history.slice(0, count), history: history.slice(count) };
}

/**
 * Kind of a request whose process may never get another turn. `question`: no later request is known to continue it.
 * `side`: in addition, it arrived close to another request of the client, as requests for titles do. `call`: the client
 * has forced a tool call, which is usually the whole answer.
 */
export interface SessionGuess {
  readonly kind: 'question' | 'side' | 'call';
  readonly client: ClientText;
}

/**
 * State of a CLI process. `starting`: the program is not running yet. `standby`: waits for its first turn. `busy`: used
 * by a job, before, during or after the turn. `idle`: waits for the next turn of its conversation; without a
 * conversation, it was renewed and waits for the next question of its client. `waiting_for_tools`: inside a turn, waits
 * for the results of the client's tools. `stopping`: is being ended, perhaps because it died on standby. `gone`: has
 * ended with all its children.
 */
export type CliState =
  | { readonly name: 'starting'; readonly next: 'standby' | 'busy' }
  | { readonly name: 'standby' }
  | { readonly name: 'busy'; readonly turn: OpenTurn | null; readonly isReusable: boolean }
  | { readonly name: 'idle'; readonly conversation: ConversationState | null }
  | { readonly name: 'waiting_for_tools'; readonly conversation: ConversationState }
  | { readonly name: 'stopping'; readonly hasDied: boolean }
  | { readonly name: 'gone' };

/** Permitted next states of each state. */
const transitions: Readonly<Record<CliState['name'], readonly CliState['name'][]>> = {
  starting: ['standby', 'busy', 'stopping'],
  standby: ['busy', 'stopping'],
  busy: ['busy', 'idle', 'waiting_for_tools', 'stopping'],
  idle: ['busy', 'stopping'],
  waiting_for_tools: ['busy', 'stopping'],
  stopping: ['gone'],
  gone: [],
};

export interface CliLimits extends TurnLimits {
  /** Time between SIGTERM and SIGKILL, milliseconds. */
  readonly graceMs: number;
}

export interface CliProcessParts {
  readonly programVersion: Pick<ProgramVersion, 'protocol'>;
  readonly limits: CliLimits;
  readonly clock: Clock;
  readonly observer: CliObserver;
  /** Removes secrets from the program's stderr. */
  readonly redactor: Pick<Redactor, 'redact'>;
  readonly callbacks: Pick<CallbackPort, 'open'> | undefined;
}

/** Parts of the process tree that a CLI process uses. */
export type OwnedTree = Pick<ProcessTree, 'child' | 'hasDied' | 'memoryBytes' | 'pause' | 'resume' | 'usage' | 'end'>;

/** Longest grace after a job. The processes of a job must end within a second, even if they ignore SIGTERM. */
const maxJobGraceMs = 400;
/** Number of refused requests in one turn after which the process is ended. */
const maxRefusals = 100;

/** Owns one program of the model CLI, and its state, until the program has ended with all its children. */
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
  #running: { readonly tree: OwnedTree; readonly input: ProgramInput; readonly output: ProgramOutput } | null = null;
  #exit: Exit | null = null;
  #isPaused = false;
  #turns = 0;
  /** Client whose questions the process may answer, with their launch; undefined before the first job. */
  #tenant: Tenant | null | undefined;
  /** Interruption of the last turn, `proven` if that has ended in time; null if the turn ended by itself. */
  #interruption: Promise<Proof> | null = null;
  /** Questions that the process has answered since its start, the present one included. */
  #questions = 1;
  /** Memory of the program after its first question, bytes; null before. */
  #firstMemoryBytes: number | null = null;
  /** Refused requests in this turn, or since the previous one. */
  #refusals = 0;
  #reportedMs = 0;
  readonly #ended = withResolvers();
  /** Resolves when the program has ended with all its children. */
  readonly ended = this.#ended.promise;

  /** `next` is the first state after the start. `onChange` is called after each change of the state. */
  constructor(parts: CliProcessParts, next: 'standby' | 'busy', onChange: (process: CliProcess) => void = () => {}) {
    this.#parts = parts;
    this.#state = { name: 'starting', next };
    this.#protocol = parts.programVersion.protocol();
    const reply = (text: string) => {
      if (this.#refusals <= maxRefusals) this.#running?.input.write(text);
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

  /** Time of the last change of the state, monotonic. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Milliseconds from the start to the first byte of stdout; null before that byte. */
  get startupMs(): number | null {
    const firstByteMs = this.#running?.output.firstByteMs ?? null;
    return firstByteMs === null ? null : firstByteMs - this.startedMs;
  }

  /**
   * Takes over a tree that is being started. Rejects with its error, or with `shutting_down` if the process was ended
   * first; all children have ended then. `tenant`: as for `claim`.
   */
  async startProgram(tree: Promise<OwnedTree>, tenant: Tenant | null = null): Promise<void> {
    this.#tree = tree;
    try {
      if (this.#protocol.decoder.requested !== undefined) this.#callback = this.#openCallback();
      this.#run(...(await Promise.all([tree, this.#callback])));
    } catch (error) {
      await this.end('done');
      throw error;
    }
    if (this.#state.name !== 'starting') throw shuttingDown();
    if (this.#state.next === 'standby') this.#become({ name: 'standby' });
    else this.claim(tenant);
  }

  /** Client that the process serves; null if it is never renewed, or before its first job. */
  get tenant(): Tenant | null {
    return this.#tenant ?? null;
  }

  /** Reserves the process for a job. `tenant`: null if the process must not serve another question of the client. */
  claim(tenant: Tenant | null = null): void {
    if (this.#state.name === 'busy') throw new Error('a CLI process was claimed twice');
    this.#serve(tenant);
    this.#become({ name: 'busy', turn: null, isReusable: true });
  }

  /**
   * Sets the client of the process with the first job. The process keeps the parts of that job, and is never renewed after
   * a job that forbids it.
   */
  #serve(tenant: Tenant | null): void {
    const { client } = this.#tenant ?? {};
    const isRenewed = this.#state.name === 'idle' && this.#state.conversation === null;
    if (isRenewed && tenant?.client !== client) throw new Error('a CLI process was claimed for a second client');
    if (this.#tenant === undefined) this.#tenant = tenant;
    else if (tenant === null || tenant.client !== client || this.#tenant === null) this.#tenant = null;
    else this.#tenant = { ...this.#tenant, isQuestion: tenant.isQuestion };
  }

  /** Prevents that the process serves another question of its client. */
  forbidRenewal(): void {
    const isOfJob = this.#state.name === 'starting' && this.#state.next === 'busy';
    if (isOfJob || this.#tenant !== undefined) this.#tenant = null;
  }

  /** Whether the program is alive, even before Node reports its death. A dead program must not get a turn. */
  get isAlive(): boolean {
    return this.#exit === null && this.#running?.tree.hasDied === false;
  }

  /** Whether the process of a job can take another turn, such as the results of the calls for which it waits. */
  get isReusable(): boolean {
    return this.#state.name === 'busy' && this.#state.isReusable && this.isAlive;
  }

  /** Pauses a standby process until `resume`, or until a job claims the process or it is ended. */
  pause(): void {
    if (!this.#isPaused) this.#running?.tree.pause();
    this.#isPaused = true;
  }

  resume(): void {
    if (this.#isPaused) this.#running?.tree.resume();
    this.#isPaused = false;
  }

  /**
   * Sends one turn to the program and writes its answer to `sink`. Rejects with `cli_error`, `spawn_error`, `timeout`
   * for a silent program, or the signal's reason; the process is then being ended, or interrupted for `renew`.
   */
  async turn(turn: Turn, sink: TurnSink, signal: AbortSignal): Promise<TurnEnd> {
    if (this.#state.name === 'busy' && this.#state.turn !== null)
      throw new Error('a CLI process has one turn at a time');
    this.#refusals = 0;
    const input = this.#protocol.writer.write(turn, ++this.#turns);
    this.#decoder.begin?.(this.#turns);
    try {
      return await this.#exchange(input, sink, signal, this.#parts.limits);
    } catch (error) {
      this.#abandonTurn(toRelayError(error));
      throw error;
    }
  }

  /** Interrupts a turn that has failed if the process may be renewed; otherwise ends the process. */
  #abandonTurn(error: RelayError): void {
    const mayStay = this.tenant !== null && this.isReusable && isHarmless(error);
    const input = mayStay ? (this.#protocol.writer.interrupt?.() ?? null) : null;
    if (input === null) void this.end(endReasonOf(error));
    else this.#interruption = this.#prove(input, interruptedAnswer, renewalLimits.interruptionMs);
  }

  /**
   * Makes the process as good as new after its last turn, for the next question of its client. Returns whether
   * the program has proven it; `ended` if the process cannot be renewed after its last turn. Unless `proven`, the process
   * must be ended.
   */
  async renew(): Promise<Proof | 'ended'> {
    if (this.#interruption !== null && (await this.#interruption) !== 'proven') return 'ended';
    if (!this.isReusable || this.#isWornOut()) return 'ended';
    this.#interruption = null;
    const input = this.#protocol.writer.renew?.() ?? null;
    if (input === null) return 'ended';
    const proof = await this.#prove(input, noAnswer, renewalLimits.proofMs);
    if (proof === 'proven') this.#questions++;
    return proof;
  }

  /**
   * Cuts the conversation of the process after these first messages. Returns whether the program has proven it; if
   * not, the process must be ended. `unchanged`: the program cannot do it.
   */
  async rewind(kept: readonly Message[]): Promise<Proof | 'unchanged'> {
    const input = this.#protocol.writer.rewind?.(kept) ?? null;
    return input === null ? 'unchanged' : this.#prove(input, noAnswer, renewalLimits.proofMs);
  }

  /** Returns whether the program reaches the end of this input in time; if not, the process is being ended. */
  async #prove(input: TurnInput, sink: TurnSink, limitMs: number): Promise<Proof> {
    const { limits, clock } = this.#parts;
    const controller = new AbortController();
    const stopTimer = clock.after(limitMs, () => controller.abort(notRenewed()));
    try {
      await this.#exchange(input, sink, controller.signal, { ...limits, stallMs: 0 });
      return this.isReusable ? 'proven' : 'unproven';
    } catch (error) {
      void this.end(endReasonOf(toRelayError(error)));
      return controller.signal.aborted ? 'late' : 'unproven';
    } finally {
      stopTimer();
    }
  }

  #isWornOut(): boolean {
    const memoryBytes = this.#running?.tree.memoryBytes() ?? null;
    this.#firstMemoryBytes ??= memoryBytes;
    const grownBytes = (memoryBytes ?? 0) - (this.#firstMemoryBytes ?? 0);
    return this.#questions >= renewalLimits.questions || grownBytes >= renewalLimits.growthBytes;
  }

  /** Writes the input and reads until its end. Rejects like `turn`. */
  async #exchange(input: TurnInput, sink: TurnSink, signal: AbortSignal, limits: TurnLimits): Promise<TurnEnd> {
    const { input: stdin, output } = this.#running ?? neverStarted();
    const { clock } = this.#parts;
    const program = {
      stdin,
      output,
      decoder: this.#decoder,
      writer: this.#protocol.writer,
      onUnexpectedOutput: () => this.#handleUnexpectedOutput(),
    };
    using open = new OpenTurn(program, sink, limits, clock);
    const abort = this.#contained(() => open.fail(signal.reason));
    signal.addEventListener('abort', abort, { once: true });
    const mayStay = this.#state.name !== 'busy' || this.#state.isReusable;
    this.#become({ name: 'busy', turn: open, isReusable: mayStay && input.stdin === 'keep-open' });
    try {
      if (signal.aborted) abort();
      else open.beginInput(input);
      if (this.#exit !== null) open.exited(this.#exit);
      const end = await open.ended;
      // The program would request the rest of a cut answer.
      if (end.isCutShort === true && !this.isReusable) this.#running?.tree.pause();
      if (this.#state.name === 'busy') this.#become({ ...this.#state, turn: null });
      return end;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /**
   * Keeps the process for its conversation after a turn; or with null, after its renewal, for the next question of its
   * client. Returns false if the process cannot be reused and must be ended.
   */
  keepFor(conversation: ConversationState | null): boolean {
    if (this.#state.name !== 'busy' || !this.#state.isReusable || this.#exit !== null) return false;
    if (conversation?.openCalls === undefined) this.#become({ name: 'idle', conversation });
    else this.#become({ name: 'waiting_for_tools', conversation });
    return true;
  }

  /** Returns the resources used since the previous call; null if they are not measured. */
  takeUsage(): CgroupUsage | null {
    const usage = this.#running?.tree.usage() ?? null;
    if (usage === null) return null;
    const processorMs = Math.round(usage.processorMs - this.#reportedMs);
    this.#reportedMs = usage.processorMs;
    return { ...usage, processorMs };
  }

  /**
   * Ends the program with all its children, after a short grace because a job may wait for the slot. Resolves when they
   * have ended.
   */
  end(reason: EndReason): Promise<void> {
    return this.#stop(reason, Math.min(this.#parts.limits.graceMs, maxJobGraceMs));
  }

  /** Ends the process like `end`, but with the full grace, because no job waits for its slot. */
  retire(): Promise<void> {
    return this.#stop('retired', this.#parts.limits.graceMs);
  }

  #stop(reason: EndReason, graceMs: number, hasDied = false): Promise<void> {
    if (this.#state.name === 'stopping' || this.#state.name === 'gone') return this.ended;
    if (this.#state.name === 'busy') this.#state.turn?.fail(shuttingDown());
    this.#become({ name: 'stopping', hasDied });
    void this.#endTree(reason, graceMs);
    return this.ended;
  }

  async #endTree(reason: EndReason, graceMs: number): Promise<void> {
    const tree = await this.#tree?.catch(() => null);
    await tree?.end(graceMs, reason);
    // Closed earlier, the callback would look like failed tool calls to the program.
    (await this.#callback?.catch(() => null))?.close();
    this.#become({ name: 'gone' });
    this.#ended.resolve();
  }

  /**
   * Opens the callback. If the program abandons a request, the process state is undefined: the process is not reused.
   */
  #openCallback(): Promise<OpenCallback> | null {
    const { callbacks } = this.#parts;
    if (callbacks === undefined) return null;
    return callbacks.open({
      requested: this.#contained((request) => this.#read((decoder) => decoder.requested?.(request) ?? [])),
      abandoned: this.#contained(() => this.#handleUnexpectedOutput()),
    });
  }

  #run(tree: OwnedTree, callback: OpenCallback | null): void {
    const listener = {
      text: this.#contained((text: string) => this.#read((decoder) => decoder.read(text))),
      end: this.#contained((exit: Exit) => this.#exited(exit)),
    };
    const output = new ProgramOutput(tree.child, listener, this.#parts);
    const input = new ProgramInput(tree.child.stdin);
    this.#running = { tree, input, output };
    const opening = this.#protocol.opening?.(tree.child.workingDirectory, callback);
    if (opening === undefined) return;
    input.write(opening);
    output.startReading();
  }

  /** Wraps a listener so that an exception fails only the turn of this process. */
  #contained<A extends readonly unknown[]>(listener: (...args: A) => void): (...args: A) => void {
    return contained(listener, (fault) => {
      if (this.#state.name === 'busy' && this.#state.turn !== null) this.#state.turn.fail(fault);
      else void this.end('done');
    });
  }

  #read(decode: Decode): void {
    if (this.#state.name === 'busy' && this.#state.turn !== null) this.#state.turn.readOutput(decode);
    else if (!saysNothing(this.#decoder, decode)) this.#handleUnexpectedOutput();
  }

  /** Counts refused requests. A program that repeats them endlessly would fill memory and log with refusals. */
  #refused(request: RequestKind): void {
    if (++this.#refusals <= maxRefusals) return this.#parts.observer.requestRefused(request);
    if (this.#state.name === 'busy' && this.#state.turn !== null) this.#state.turn.fail(tooManyRefusals());
    else this.#handleUnexpectedOutput();
  }

  /** Handles unexpected output, which could enter the answer of a later turn: the process is not reused. */
  #handleUnexpectedOutput(): void {
    if (this.#state.name !== 'busy') this.#endOutsideTurn();
    else if (this.#state.isReusable) this.#become({ ...this.#state, isReusable: false });
  }

  #exited(exit: Exit): void {
    this.#exit = exit;
    if (this.#state.name === 'busy') this.#state.turn?.exited(exit);
    else this.#endOutsideTurn();
  }

  /** Ends a process that has failed outside of a turn. A process of a conversation may do so; on standby, it has died. */
  #endOutsideTurn(): void {
    const isOfConversation = this.#state.name === 'idle' || this.#state.name === 'waiting_for_tools';
    void this.#stop('retired', this.#parts.limits.graceMs, !isOfConversation);
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

function tooManyRefusals(): RelayError {
  return cliError('other', `the model CLI repeated a refused request more than ${maxRefusals} times`);
}

function neverStarted(): never {
  throw new Error('a CLI process was given a turn before its start');
}
