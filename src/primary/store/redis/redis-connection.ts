import type { Clock, StopTimer } from '../../../shared/clock.js';
import { storeUnavailable } from '../../../shared/errors.js';
import { withResolvers } from '../../../shared/resolvers.js';
import { type StoreObserver, type StoreOperation, silentObserver } from '../contract/store.js';
import type { ScriptName } from './lua.js';
import { OpenCommands } from './open-commands.js';
import { isAnswer, isOfAllCommands, NotConnected, reasonWithRight, unavailableFor } from './redis-faults.js';
import type { RedisArgument, RedisLink, ScriptReply } from './redis-link.js';
import { shortcomingsOf } from './redis-settings.js';
import { RedisTime } from './redis-time.js';

/** A Redis that answers at all answers in a millisecond. */
const commandLimitMs = 1000;
/** While it does not answer, it is asked again at this pace. */
const probeMs = 1000;
const probeLimitMs = 900; // one is over before the next
/** The connection may be dead without knowing it. */
const reconnectMs = 5000;
/** What fails again and again is told again after this time. */
const betweenWarningsMs = 60_000;

/**
 * Owns whether Redis can be used. Once it has failed, nothing is sent to it but one probe each second, and whoever wants
 * something is refused at once.
 */
export class RedisConnection {
  readonly #link: RedisLink;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #time: RedisTime;
  #observer: StoreObserver = silentObserver;
  #state: 'new' | 'up' | 'down' | 'closed' = 'new';
  #trouble = 'no connection yet';
  /** When each kind of thing was told last, by the first word of its sentence: there are few. */
  readonly #warned = new Map<string, number>();
  readonly #open: OpenCommands;
  /** When a probe was answered last, or another connection was tried instead. */
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
    this.#open = new OpenCommands(clock);
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
    else void this.look();
  }

  /** `action` is done when Redis can be used again, before anybody else is let to it. */
  onBack(action: () => Promise<void>): void {
    this.#beforeBack.push(action);
  }

  /** `listener` is told of each connection: it may be another Redis. There is one listener. */
  onConnected(listener: () => void): void {
    this.#onConnected = listener;
  }

  /** Resolves when Redis can be used, or after that time, whichever comes first. */
  async opened(limitMs: number): Promise<void> {
    const stopTimer = this.#clock.after(limitMs, this.#firstProbe.resolve);
    await this.#firstProbe.promise;
    stopTimer();
    if (this.#state === 'new') this.#fails(this.#trouble);
  }

  key(...parts: readonly string[]): string {
    return [this.#prefix, ...parts].join(':');
  }

  /** Rejects with `store_unavailable`. */
  async call(operation: StoreOperation, command: string, ...args: readonly RedisArgument[]): Promise<unknown> {
    return this.#timed(operation, () => this.#guarded((link) => link.call(command, ...args)));
  }

  /**
   * Does what a script says, unless it would be done too late. Rejects with `store_unavailable`: as `Unanswered` where it
   * may have been done all the same.
   */
  async run(
    operation: StoreOperation,
    name: ScriptName,
    keys: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<ScriptReply> {
    return this.#timed(operation, async () => {
      const reply = await this.#guarded((link) => this.#script(link, name, keys, args));
      if (reply.verdict !== 'late') return reply;
      const again = await this.#guarded((link) => this.#script(link, name, keys, args)); // by now its time is known
      if (again.verdict === 'late') throw storeUnavailable();
      return again;
    });
  }

  /** As `run`, for one who would rather go on without: it takes Redis for down no sooner than others do. */
  async runWithin(
    limitMs: number,
    name: ScriptName,
    keys: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<ScriptReply> {
    if (!this.isUp || this.#open.isStalled(limitMs)) throw storeUnavailable();
    const reply = await this.#open.limited(() => this.#script(this.#link, name, keys, args, limitMs), limitMs);
    if (reply.verdict === 'late') throw storeUnavailable();
    return reply;
  }

  /** For `onBack` alone. */
  async runAnyway(name: ScriptName, keys: readonly string[], args: readonly RedisArgument[]): Promise<void> {
    await this.#open.limited(() => this.#script(this.#link, name, keys, args), probeLimitMs);
  }

  /** At how this Redis is set up: what an operator has to know of it is warned of, and told. Never rejects. */
  async look(): Promise<readonly string[]> {
    const told = await shortcomingsOf((...ask) => this.#open.limited(() => this.#link.call(...ask), commandLimitMs));
    for (const sentence of told) this.#warn(sentence);
    return told;
  }

  /** Of what was refused, here or on another connection. */
  warn(error: unknown): void {
    if (isAnswer(error)) this.#warn(this.#reasonOf(error));
  }

  close(): void {
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

  async #guarded<T>(send: (link: RedisLink) => Promise<T>): Promise<T> {
    if (!this.isUp) throw storeUnavailable();
    try {
      return await this.#open.limited(() => send(this.#link), commandLimitMs);
    } catch (error) {
      if (isOfAllCommands(error)) this.#fails(this.#reasonOf(error));
      else this.warn(error);
      throw unavailableFor(error);
    }
  }

  async #script(
    link: RedisLink,
    name: ScriptName,
    keys: readonly string[],
    args: readonly RedisArgument[],
    limitMs = commandLimitMs,
  ): Promise<ScriptReply> {
    const notAfter = this.#time.after(limitMs);
    const [verdict, now, ...rest] = (await link.script(name, keys, [notAfter, ...args])) as readonly unknown[];
    this.#time.is(Number(now));
    return { verdict: String(verdict), rest };
  }

  #connected(): void {
    this.#onConnected();
    void this.#probe();
  }

  #note(error: Error): void {
    const isNews = this.#state === 'up' || !(error instanceof NotConnected); // else what kept it from coming back is lost
    if (isNews) this.#trouble = error.message;
    if (this.#state === 'up') this.#fails(error.message);
  }

  /** Not for each thing that fails. */
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
      await this.runAnyway('probe', [this.key('probe')], [this.key('jobs', 'told')]);
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
    void this.look();
  }
}
