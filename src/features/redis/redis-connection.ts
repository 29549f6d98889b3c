import { type StoreObserver, type StoreOperation, silentObserver } from '../../primary/store/contract/store.js';
import { withResolvers } from '../../shared/async.js';
import { type Clock, type StopTimer, yieldToEventLoop } from '../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../shared/errors.js';
import {
  isAnswer,
  isOfAllCommands,
  NotConnected,
  reasonOf,
  reasonWithRight,
  TookTooLong,
  unavailableFor,
} from './redis-faults.js';
import type { RedisArgument, RedisLink, ScriptArguments, ScriptName, ScriptReply } from './redis-link.js';

/** Limit for a command. A working Redis answers within a millisecond. */
const commandLimitMs = 1000;
/**
 * Bytes of values for which a command, and each later one, has a millisecond more: on a slow network, a large value of one
 * client must not take the store down for all.
 */
const bytesPerMs = 8192;
/** Interval of the probes while Redis does not answer. */
const probeMs = 1000;
const probeLimitMs = 900; // ends before the next probe
/** Without an answer for this long, the connection is replaced. */
const reconnectMs = 5000;
/**
 * Share of the limit within which Redis may still run a command. A stopped Redis may read a command late, and must
 * refuse it before the caller gives up.
 */
const marginShare = 0.9;
const ticksPerMs = 100;
/** Interval at which a lasting fault is reported again. */
const betweenWarningsMs = 60_000;

/**
 * Owns whether Redis is usable. After a failure, it sends only one probe per second, and refuses all callers at once.
 */
export class RedisConnection {
  readonly #link: RedisLink;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #time: RedisTime;
  #observer: StoreObserver = silentObserver;
  #state: 'new' | 'up' | 'down' | 'closed' = 'new';
  #trouble = 'no connection yet';
  /** Time of the last report of each kind of fault, by the first word of its sentence. There are few kinds. */
  readonly #warned = new Map<string, number>();
  #limits = noLimits;
  /** Number of large values in a row after which the connection was lost. */
  #lost = 0;
  /** Size of the largest value that Redis has accepted. */
  #accepted = 0;
  readonly #open: OpenCommands;
  /** Monotonic time of the last answered probe or of the last reconnect. */
  #answeredMs: number;
  #isProbing = false;
  readonly #stopProbes: StopTimer;
  readonly #firstProbe = withResolvers();
  readonly #beforeBack: (() => Promise<void>)[] = [];
  #onConnected: () => void = () => {};

  constructor(link: RedisLink, prefix: string, clock: Clock) {
    this.#link = link;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#time = new RedisTime(clock);
    this.#open = new OpenCommands(clock, () => link.bytesRead);
    this.#answeredMs = clock.monotonicMs();
    link.onConnected(() => this.#connected());
    link.onTrouble((error) => this.#note(error));
    this.#stopProbes = clock.every(probeMs, () => void this.#probeAgain());
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  observe(observer: StoreObserver): void {
    this.#observer = observer;
    if (this.#state === 'down') observer.down(this.#trouble);
    else void this.checkSettings();
  }

  /** Registers an action that runs when Redis answers again, before any other command. */
  onBack(action: () => Promise<void>): void {
    this.#beforeBack.push(action);
  }

  /** Sets the only listener for new connections. A new connection may lead to another Redis. */
  onConnected(listener: () => void): void {
    this.#onConnected = listener;
  }

  /** Resolves when Redis is usable, or after the time limit. */
  async opened(limitMs: number): Promise<void> {
    const stopTimer = this.#clock.after(limitMs, this.#firstProbe.resolve);
    await this.#firstProbe.promise;
    stopTimer();
    if (this.#state === 'new') this.#fails(this.#trouble);
  }

  key(...parts: readonly string[]): string {
    return [this.#prefix, ...parts].join(':');
  }

  /** Sends a command. Rejects with `store_unavailable`. */
  async call(operation: StoreOperation, command: string, ...args: readonly RedisArgument[]): Promise<unknown> {
    return this.#timed(operation, () => this.#guarded(args, (link) => link.call(command, ...args)));
  }

  /**
   * Runs a script, unless Redis gets it too late. Rejects with `store_unavailable`, as `Unanswered` if the script may
   * have run.
   */
  async run(operation: StoreOperation, name: ScriptName, args: ScriptArguments): Promise<ScriptReply> {
    return this.#timed(operation, async () => {
      const values = Object.values(args);
      const send = (link: RedisLink, limitMs: number) => this.#script(link, name, args, limitMs);
      const reply = await this.#guarded(values, send);
      if (reply.verdict !== 'late') return reply;
      // The first reply has set the time of Redis.
      const again = await this.#guarded(values, send);
      if (again.verdict === 'late') throw storeUnavailable();
      return again;
    });
  }

  /** Runs a script for a caller that can continue without it: a failure does not take the store down. */
  async runWithin(limitMs: number, name: ScriptName, args: ScriptArguments): Promise<ScriptReply> {
    if (!this.isUp || this.#open.isStalled(limitMs)) throw storeUnavailable();
    const reply = await this.#open.limited(() => this.#script(this.#link, name, args, limitMs), limitMs);
    if (reply.verdict === 'late') throw storeUnavailable();
    return reply;
  }

  /** Runs a script while Redis counts as down; only for actions of `onBack`. */
  async runAnyway(name: ScriptName, args: ScriptArguments): Promise<void> {
    await this.#open.limited(() => this.#script(this.#link, name, args), probeLimitMs);
  }

  /** Warns of Redis settings that endanger data, and returns them as sentences. Never rejects. */
  async checkSettings(): Promise<readonly string[]> {
    const askRedis: AskRedis = (...ask) => this.#open.limited(() => this.#link.call(...ask), commandLimitMs);
    const [limits, sentences] = await Promise.all([limitsOf(askRedis).catch(() => null), shortcomingsOf(askRedis)]);
    if (limits !== null) this.#limits = limits; // otherwise a limit that a failure has shown in the meantime stays
    for (const sentence of sentences) this.#warn(sentence);
    return sentences;
  }

  /** Reports an error reply of Redis, from this or another connection. */
  warn(error: unknown): void {
    if (isAnswer(error)) this.#warn(this.#reasonOf(error));
  }

  closeConnection(): void {
    this.#state = 'closed';
    this.#stopProbes();
    this.#firstProbe.resolve();
    this.#link.close();
  }

  async #timed<T>(operation: StoreOperation, action: () => Promise<T>): Promise<T> {
    const begunMs = this.#clock.monotonicMs();
    try {
      return await action();
    } finally {
      this.#observer.done(operation, this.#clock.monotonicMs() - begunMs);
    }
  }

  async #guarded<T>(values: readonly RedisArgument[], send: SendCommand<T>): Promise<T> {
    if (!this.isUp) throw storeUnavailable();
    const sizes = values.map(bytesOf);
    this.#checkSizes(sizes);
    const bytes = sumOf(sizes);
    const limitMs = commandLimitMs + Math.floor((this.#open.bytes + bytes) / bytesPerMs);
    try {
      const answer = await this.#open.limited(() => send(this.#link, limitMs), limitMs, bytes, maxRepetitions);
      if (bytes > smallestLimit) this.#recordAccepted(sizes);
      return answer;
    } catch (error) {
      this.#learnLimit(sizes, error);
      if (!isOfAllCommands(error) || (await this.#isOfCommand(error))) this.warn(error);
      else this.#fails(this.#reasonOf(error));
      throw unavailableFor(error);
    }
  }

  /**
   * Whether an error reply about the state of Redis concerns one command alone, because a probe is answered: one large
   * value may exceed the memory of Redis for a moment.
   */
  async #isOfCommand(error: unknown): Promise<boolean> {
    if (!isAnswer(error)) return false;
    return this.runAnyway('counters.probe', {}).then(
      () => true,
      () => false,
    );
  }

  /**
   * Refuses oversized values. Redis would close the connection on them, which would take the store down for all
   * callers.
   */
  #checkSizes(sizes: readonly number[]): void {
    const { valueBytes, commandBytes } = this.#limits;
    const [name, max] =
      Math.max(0, ...sizes) > valueBytes
        ? ['proto-max-bulk-len', valueBytes]
        : ['client-query-buffer-limit', commandBytes];
    const bytes = sumOf(sizes);
    if (bytes <= max) return;
    this.#warn(`${name} of Redis allows ${max} bytes, and one command has ${bytes}`);
    throw new RelayError(
      'store_unavailable',
      `this is too large for the store, which accepts ${max} bytes in one command`,
    );
  }

  /**
   * Infers a size limit from errors, for a Redis whose settings cannot be read. The connection may close before the
   * error reply arrives. A size that Redis has accepted before is never refused: then the connection was lost for another
   * reason.
   */
  #learnLimit(sizes: readonly number[], error: unknown): void {
    const largest = Math.max(0, ...sizes);
    if (largest <= Math.max(smallestLimit, this.#accepted)) return;
    this.#lost = error instanceof NotConnected ? this.#lost + 1 : 0;
    if (this.#lost < 2 && !tooLong.test(reasonOf(error))) return;
    this.#limits = { ...this.#limits, valueBytes: Math.max(smallestLimit, this.#accepted, largest >> 1) };
  }

  #recordAccepted(sizes: readonly number[]): void {
    const largest = Math.max(...sizes);
    if (largest <= smallestLimit) return;
    this.#accepted = Math.max(this.#accepted, largest);
    this.#lost = 0;
  }

  async #script(
    link: RedisLink,
    name: ScriptName,
    args: ScriptArguments,
    limitMs = commandLimitMs,
  ): Promise<ScriptReply> {
    const notAfter = this.#time.after(limitMs);
    const reply = await link.script(name, notAfter, args);
    if (!Array.isArray(reply)) throw new Error('the answer does not come from Redis');
    const [verdict, now, ...rest] = reply as readonly unknown[];
    this.#time.is(Number(now));
    return { verdict: String(verdict), remaining: rest };
  }

  #connected(): void {
    this.#onConnected();
    void this.#probe();
  }

  #note(error: Error): void {
    // While Redis is down, `NotConnected` would hide the reason of the failed reconnects.
    const isNews = this.#state === 'up' || !(error instanceof NotConnected);
    if (isNews) this.#trouble = error.message;
    if (this.#state === 'up') this.#fails(error.message);
  }

  /** Reports each kind of fault once a minute. */
  #warn(reason: string): void {
    const now = this.#clock.monotonicMs();
    const [kind = ''] = reason.split(' ');
    if (now - (this.#warned.get(kind) ?? -Infinity) < betweenWarningsMs) return;
    this.#warned.set(kind, now);
    this.#observer.warned(reason);
  }

  #reasonOf(error: unknown): string {
    return error instanceof NotConnected ? this.#trouble : reasonWithRight(error, this.#prefix);
  }

  #fails(reason: string): void {
    if (this.#state === 'closed' || this.#state === 'down') return;
    this.#answeredMs = this.#clock.monotonicMs();
    this.#state = 'down';
    this.#trouble = reason;
    this.#observer.down(reason);
  }

  #probeAgain(): void {
    if (this.#state === 'up') return;
    if (this.#clock.monotonicMs() - this.#answeredMs >= reconnectMs) {
      this.#answeredMs = this.#clock.monotonicMs();
      this.#link.reconnect();
    }
    void this.#probe();
  }

  async #probe(): Promise<void> {
    if (this.#isProbing || this.#state === 'up' || this.#state === 'closed') return;
    this.#isProbing = true;
    try {
      await this.runAnyway('counters.probe', {});
      this.#answeredMs = this.#clock.monotonicMs();
      for (const action of this.#beforeBack) await action();
      this.#works();
    } catch (error) {
      this.#trouble = this.#reasonOf(error);
      if (isAnswer(error)) this.#answeredMs = this.#clock.monotonicMs();
    } finally {
      this.#isProbing = false;
    }
  }

  #works(): void {
    if (this.#state === 'closed') return;
    const wasDown = this.#state === 'down';
    this.#state = 'up';
    this.#firstProbe.resolve();
    if (!wasDown) return;
    this.#observer.back();
    void this.checkSettings();
  }
}

/** Sends a command whose caller gives up after the limit. */
type SendCommand<T> = (link: RedisLink, limitMs: number) => Promise<T>;

function sumOf(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Largest value and largest command that Redis accepts, in bytes. */
interface SizeLimits {
  readonly valueBytes: number;
  readonly commandBytes: number;
}

const noLimits: SizeLimits = { valueBytes: Number.POSITIVE_INFINITY, commandBytes: Number.POSITIVE_INFINITY };
/** Smallest limit that Redis can be configured with. */
const smallestLimit = 1024 * 1024;
/** Error reply after which Redis closes the connection. */
const tooLong = /Protocol error: invalid bulk length/;

async function limitsOf(ask: AskRedis): Promise<SizeLimits> {
  const [valueBytes, commandBytes] = await Promise.all([
    settingOf(ask, 'proto-max-bulk-len'),
    settingOf(ask, 'client-query-buffer-limit'),
  ]);
  return { valueBytes: Number(valueBytes) || Infinity, commandBytes: Number(commandBytes) || Infinity };
}

/** Returns the size in bytes, exact only for large values: no limit is below `smallestLimit`. */
function bytesOf(value: RedisArgument): number {
  if (typeof value === 'number') return 0;
  if (typeof value !== 'string') return value.length;
  return value.length * 3 < smallestLimit ? value.length : Buffer.byteLength(value);
}

type AskRedis = (command: string, ...args: readonly string[]) => Promise<unknown>;

/** Finds settings of Redis that endanger data, as sentences. Never rejects. */
async function shortcomingsOf(ask: AskRedis): Promise<string[]> {
  try {
    const [appendonly, policy] = await Promise.all([settingOf(ask, 'appendonly'), settingOf(ask, 'maxmemory-policy')]);
    return [
      ...(appendonly === 'no' ? ['appendonly is no: Redis loses all data when it is restarted'] : []),
      ...(policy !== 'noeviction' ? [`maxmemory-policy is ${policy}, not noeviction: Redis may evict any data`] : []),
    ];
  } catch (error) {
    return [`appendonly and maxmemory-policy cannot be checked: ${reasonOf(error)}`];
  }
}

async function settingOf(ask: AskRedis, name: string): Promise<string> {
  const [, value] = (await ask('CONFIG', 'GET', name)) as readonly unknown[];
  return String(value);
}

/** Bytes that a connection reads within a limit while a large answer arrives. */
const minRead = 256 * 1024;
/** Number of further limits for a large answer. */
const maxRepetitions = 9;

/** Owns the commands without an answer, even if their callers no longer wait. */
class OpenCommands {
  readonly #clock: Clock;
  /** Open commands, oldest first. */
  readonly #open = new Set<{ readonly begunMs: number; readonly bytes: number }>();
  readonly #bytesRead: () => number;

  /** `bytesRead`: number of bytes that the connection has read. */
  constructor(clock: Clock, bytesRead: () => number) {
    this.#clock = clock;
    this.#bytesRead = bytesRead;
  }

  /** Bytes of the values of all open commands. */
  get bytes(): number {
    return this.#open.size === 0 ? 0 : sumOf([...this.#open].map(({ bytes }) => bytes));
  }

  /** Whether the oldest open command has waited for at least this long. */
  isStalled(limitMs: number): boolean {
    const [oldest] = this.#open;
    return oldest !== undefined && this.#clock.monotonicMs() - oldest.begunMs >= limitMs;
  }

  /**
   * Runs `send` with a time limit. `bytes`: size of its values. `repetitions`: number of further limits while a large answer
   * arrives.
   */
  async limited<T>(send: () => Promise<T>, limitMs: number, bytes = 0, repetitions = 0): Promise<T> {
    const { promise: late, reject } = withResolvers<never>();
    let read = this.#bytesRead();
    let left = repetitions;
    const giveUp = () => {
      const before = read;
      read = this.#bytesRead();
      if (read - before < minRead || --left < 0) reject(new TookTooLong(limitMs));
      else stopTimer = startTimer();
    };
    // After a stall of this process, the timer fires before an answer is read that arrived earlier.
    const startTimer = () => this.#clock.after(limitMs, () => void yieldToEventLoop().then(giveUp));
    let stopTimer = startTimer();
    try {
      return await Promise.race([this.#counted(send(), bytes), late]);
    } finally {
      left = 0; // a late `giveUp` starts no timer
      stopTimer();
    }
  }

  #counted<T>(answer: Promise<T>, bytes: number): Promise<T> {
    const entry = { begunMs: this.#clock.monotonicMs(), bytes };
    this.#open.add(entry);
    const done = () => void this.#open.delete(entry);
    answer.then(done, done);
    return answer;
  }
}

/** Estimates the clock of Redis, in ticks, from its last answer. The clocks of hosts may differ. */
class RedisTime {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Clock of Redis minus the local monotonic clock; null before the first answer. */
  #aheadMs: number | null = null;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Sets the time from an answer that has just arrived. */
  is(ticks: number): void {
    this.#aheadMs = ticks / ticksPerMs - this.#clock.monotonicMs();
  }

  /** Returns the time of Redis after which the caller of a command sent now no longer waits. */
  after(limitMs: number): number {
    if (this.#aheadMs === null) return Number.MAX_SAFE_INTEGER;
    return Math.floor((this.#clock.monotonicMs() + this.#aheadMs + limitMs * marginShare) * ticksPerMs);
  }
}
