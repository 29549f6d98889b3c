import { readFile, stat } from 'node:fs/promises';
import { withResolvers } from '../../../shared/async.js';
import { type Clock, delay, type StopTimer, timestamp } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/log/logger.js';
import { readStat } from '../../../shared/process/proc.js';
import type { FileLogin, StoredLogin } from '../contract/adapter.js';

export interface LoginParts {
  readonly cli: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Runs the program that renews the login, until it exits or `isDone` resolves. Resolves when the program has ended.
   */
  readonly renew: (isDone: Promise<void>) => Promise<void>;
}

/**
 * Margin before the time at which the CLI renews the token. Programs that start within it wait, because they might
 * renew the token.
 */
const marginMs = 2000;
/** A program that ends gets this long for its own end, in which it may still begin a renewal. A busy machine is slow. */
const endMarginMs = 60_000;
/** Interval for reading the file again, because a person may have logged in. */
const rereadMs = 10_000;
const pollMs = 100;
/** Time after which a program that has not begun a renewal will not begin one. */
const beginLimitMs = 15_000;
/** Longest renewal. A CLI aborts its request after 30 s. */
const renewalLimitMs = 120_000;
const minRetryMs = 2000;
const maxRetryMs = 60_000;

/**
 * Owns the renewals of one login in files. Only one program renews the login; other starts and turns wait. Two renewals
 * at once, or one cut short, would spend the stored secret and lose the login.
 */
export class LoginKeeper {
  readonly #login: FileLogin;
  readonly #parts: LoginParts;
  /** Login in the file; undefined before the file was read, null if it holds no such login. */
  #stored: StoredLogin | null | undefined;
  #renewal: Promise<void> | null = null;
  #failures = 0;
  #retryMs = Number.NEGATIVE_INFINITY;
  #isOver = false;
  #stopTimer: StopTimer = () => {};

  constructor(login: FileLogin, parts: LoginParts) {
    this.#login = login;
    this.#parts = parts;
  }

  /** Renews the login whenever it is due, even without jobs. */
  startRenewals(): void {
    void this.#tend();
  }

  stopRenewals(): void {
    this.#isOver = true;
    this.#stopTimer();
  }

  /** Whether a program that starts now might renew the login. */
  get isDue(): boolean {
    return this.#stored === undefined || this.#leftMs < this.#login.renewedBeforeMs + marginMs;
  }

  /** Whether a program that ends now might still begin a renewal. */
  get mayBeRenewed(): boolean {
    return this.#stored === undefined || this.#leftMs < this.#login.renewedBeforeMs + endMarginMs;
  }

  /**
   * Resolves when programs may use the login: at once, or after a renewal that is due. After a failed renewal, the old
   * token is used until it expires. Never rejects.
   */
  ready(): Promise<void> {
    if (!this.isDue) return Promise.resolve();
    const begin = () => this.#renewIfDue().catch(() => {}); // for example without file descriptors
    this.#renewal ??= begin().then(() => {
      this.#renewal = null;
    });
    return this.#renewal;
  }

  /** Returns why the login cannot be used; null if the file shows no fault, undefined if it holds no such login. */
  async findFault(): Promise<string | null | undefined> {
    await this.#read();
    if (this.#stored === undefined || this.#stored === null) return undefined;
    if (this.#stored === 'ended')
      return 'the login of the model CLI has ended, because its renewal was refused: log in anew as the service user';
    if (this.#leftMs > 0 || this.#failures === 0) return null;
    return `the login of the model CLI has expired, and ${this.#failures} renewals in a row have failed`;
  }

  /** Returns whether one of these processes may be renewing the login: it has the lock, or the lock names no process. */
  async isRenewedBy(pids: () => Promise<readonly number[]>): Promise<boolean> {
    const holder = await this.#lockHolder();
    return holder === 'unknown' || (holder !== null && (await pids()).includes(holder));
  }

  get #leftMs(): number {
    const stored = this.#stored ?? null;
    return stored === null || stored === 'ended'
      ? Number.POSITIVE_INFINITY
      : stored.expiresAt - this.#parts.clock.now();
  }

  async #tend(): Promise<void> {
    if (this.isDue) await this.ready();
    else await this.#read();
    if (this.#isOver) return;
    const { clock } = this.#parts;
    const { renewedBeforeMs } = this.#login;
    const waitMs = Math.max(this.#leftMs - renewedBeforeMs - marginMs, this.#retryMs - clock.monotonicMs(), pollMs);
    this.#stopTimer = clock.after(Math.min(waitMs, rereadMs), () => void this.#tend());
  }

  async #renewIfDue(): Promise<void> {
    const { clock } = this.#parts;
    const { renewedBeforeMs } = this.#login;
    await this.#read();
    const before = this.#stored;
    const untilMs = clock.monotonicMs() + renewalLimitMs;
    while (this.isDue && !this.#isOver && clock.monotonicMs() < untilMs) {
      const earlyMs = this.#leftMs - renewedBeforeMs;
      const isHeld = await this.#isHeld();
      if (!isHeld && earlyMs < 0) return clock.monotonicMs() < this.#retryMs ? undefined : this.#renew();
      await delay(clock, isHeld ? pollMs : earlyMs + 1);
      await this.#read();
      if (!isSame(before, this.#stored)) return; // another process has renewed the login
    }
  }

  async #renew(): Promise<void> {
    const { cli, clock, log, renew } = this.#parts;
    const before = this.#stored;
    const beganMs = clock.monotonicMs();
    const done = withResolvers();
    const ended = renew(done.promise).catch(() => {});
    const isRenewed = await this.#watchRenewal(before, ended);
    done.resolve();
    const stored = this.#stored ?? null;
    const durationMs = Math.round(clock.monotonicMs() - beganMs);
    if (isRenewed && stored !== null && stored !== 'ended') {
      this.#failures = 0;
      log.info('login_renewed', { cli, duration_ms: durationMs, expires_at: timestamp(stored.expiresAt) });
      return;
    }
    const waitMs = Math.min(minRetryMs * 2 ** this.#failures++, maxRetryMs);
    this.#retryMs = clock.monotonicMs() + waitMs;
    if (stored === 'ended') log.error('login_ended', { cli });
    else log.warn('login_not_renewed', { cli, duration_ms: durationMs, retry_seconds: waitMs / 1000 });
  }

  /** Waits until the renewal ends or shows no activity within the limits. Returns whether the file has changed. */
  async #watchRenewal(before: StoredLogin | null | undefined, ended: Promise<void>): Promise<boolean> {
    const { clock } = this.#parts;
    const beganMs = clock.monotonicMs();
    let hasEnded = false;
    void ended.then(() => {
      hasEnded = true;
    });
    for (let wasHeld = false; ; ) {
      await delay(clock, pollMs);
      const wasOver = hasEnded;
      const isHeld = await this.#isHeld();
      await this.#read(); // read after the lock, which is released once the new tokens are stored
      const tookMs = clock.monotonicMs() - beganMs;
      if (!isHeld && !isSame(before, this.#stored)) return true;
      if (wasOver || tookMs > renewalLimitMs || (!isHeld && (wasHeld || tookMs > beginLimitMs))) return false;
      wasHeld ||= isHeld;
    }
  }

  /** Reads the file. If that fails, for example without file descriptors, the previous content stays valid. */
  async #read(): Promise<void> {
    try {
      this.#stored = this.#login.read(await readFile(this.#login.path, 'utf8'));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || this.#stored === undefined) this.#stored = null;
    }
  }

  /** Whether a living process of this service, its predecessor or a person renews the login. */
  async #isHeld(): Promise<boolean> {
    const holder = await this.#lockHolder();
    return holder === 'unknown' || (holder !== null && (await readStat(holder)) !== null);
  }

  async #lockHolder(): Promise<number | 'unknown' | null> {
    const { lock, lockStaleMs, lockOwner, readOwner } = this.#login;
    const found = await stat(lock).catch(() => null);
    if (found === null || this.#parts.clock.now() - found.mtimeMs > lockStaleMs) return null;
    const owner = readOwner(await readFile(lockOwner, 'utf8').catch(() => ''));
    return owner !== null && Math.abs(owner.lockBornAt - found.birthtimeMs) < 1 ? owner.pid : 'unknown';
  }
}

function isSame(a: StoredLogin | null | undefined, b: StoredLogin | null | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
