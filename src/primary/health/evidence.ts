import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';

/** Refusal of a job, as evidence against the account or a model. */
export interface Refusal {
  readonly client: ClientText;
  /** Start of the job, monotonic. */
  readonly beganMs: number;
  /** Whether an error code confirms the cause. Otherwise the request itself may be the cause. */
  readonly isCertain: boolean;
}

interface FirstRefusal extends Refusal {
  readonly sinceMs: number;
}

/** Sequence of failed jobs without a success. */
interface Streak {
  readonly count: number;
  /** Client of the first failed job; null if no request could have caused the failure. */
  readonly first: ClientText | null;
  /** Whether jobs of several clients failed, or a job failed independently of its request. */
  readonly isOfMany: boolean;
  readonly lastClass: string;
}

const noStreak: Streak = { count: 0, first: null, isOfMany: false, lastClass: '' };
/** Limit of remembered models, because clients may send any model name. */
const maxModels = 64;
const maxFailures = 3;
/** Time after which repeated failures expire: a CLI that is not ready may get no jobs that could show its recovery. */
const quietMs = 5 * 60_000;
const credentialRefused =
  "the model CLI's credential was refused when a job used it: log in anew and recheck, or replace it and restart";

/**
 * Owns the evidence from jobs about the credential, account, models and program of one model CLI. Failures of
 * one client alone prove little if there are several clients, because its requests may cause them.
 */
export class Evidence {
  readonly #clock: Clock;
  readonly #clients: SeenClients;
  /** Verdict of the job that began last, because the credential may be replaced while earlier jobs run. */
  #credential = { isRefused: false, beganMs: Number.NEGATIVE_INFINITY };
  /** Time of the first refusal of the credential since the last answer, monotonic; null if none. */
  #suspectedMs: number | null = null;
  /** First refusal of each sequence, by model; null is the account. */
  readonly #refusals = new Map<string | null, FirstRefusal>();
  #streak = noStreak;
  #failedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, clients: SeenClients) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** Whether the API refuses the credential. The CLI only knows that a credential exists. */
  get isCredentialRefused(): boolean {
    return this.#credential.isRefused;
  }

  /** Whether a job suggests a refused credential. A check that agrees confirms it. */
  get isCredentialSuspected(): boolean {
    return this.#suspectedMs !== null;
  }

  /** Reason why the CLI is not ready, from jobs alone; null if it seems ready. */
  get fault(): string | null {
    return this.isCredentialRefused ? credentialRefused : this.#faultOfStreak;
  }

  suspectCredential(): void {
    this.#suspectedMs ??= this.#clock.monotonicMs();
  }

  /**
   * Records that an error code refused the credential of a job that began at this time. Returns whether this is new.
   */
  refuseCredential(beganMs: number): boolean {
    return this.#judgeCredential(beganMs, true);
  }

  /**
   * Records a refusal. Returns whether it confirms an earlier one, because its job began after the earlier refusal.
   * Without an error code, the two jobs must be of different clients if there are several clients. `model` is null for
   * the account.
   */
  recordRefusal(model: string | null, refusal: Refusal): boolean {
    const first = this.#refusals.get(model);
    if (first !== undefined && refusal.beganMs >= first.sinceMs && this.#isConfirmed(first, refusal)) return true;
    if (first === undefined || (refusal.isCertain && !first.isCertain)) this.#storeRefusal(model, refusal);
    return false;
  }

  /**
   * Records a failure of the program. `failureClass` is chosen by this service, never by the model; `client` is null if
   * no request could have caused the failure. Returns whether the CLI has become not ready.
   */
  recordFailure(failureClass: string, client: ClientText | null): boolean {
    const wasFailing = this.#faultOfStreak !== null;
    const { count, first: known, isOfMany } = this.#streak;
    const first = known ?? client;
    const isOther = client === null || (first !== null && holderOf(client) !== holderOf(first));
    this.#streak = { count: count + 1, first, isOfMany: isOfMany || isOther, lastClass: failureClass };
    this.#failedMs = this.#clock.monotonicMs();
    return !wasFailing && this.#faultOfStreak !== null;
  }

  /**
   * Records that a job of this model, which began at this time, was answered. Returns whether the credential counted as
   * refused before.
   */
  recordAnswer(model: string, beganMs: number): boolean {
    this.#streak = noStreak;
    if (this.#suspectedMs !== null && beganMs >= this.#suspectedMs) this.#suspectedMs = null;
    for (const each of [null, model]) {
      const first = this.#refusals.get(each);
      if (first !== undefined && beganMs >= first.sinceMs) this.#refusals.delete(each);
    }
    return this.#judgeCredential(beganMs, false);
  }

  /** Forgets refusals of this model, or (null) of the account, when jobs are admitted again. */
  forgetRefusalsOf(model: string | null): void {
    this.#refusals.delete(model);
    if (model === null) this.#suspectedMs = null;
  }

  /** Forgets all refusals, at the request of an operator. */
  forgetAllRefusals(): void {
    this.#refusals.clear();
    this.#suspectedMs = null;
  }

  /** Starts a forced check: the credential may have been replaced, and earlier failures of the program expire. */
  beginForcedCheck(beganMs: number): void {
    this.#judgeCredential(beganMs, false);
    this.#failedMs = Number.NEGATIVE_INFINITY;
  }

  #judgeCredential(beganMs: number, isRefused: boolean): boolean {
    if (beganMs < this.#credential.beganMs) return false;
    const isNews = isRefused !== this.#credential.isRefused;
    this.#credential = { isRefused, beganMs };
    return isNews;
  }

  #isConfirmed(first: FirstRefusal, second: Refusal): boolean {
    return second.isCertain ? first.isCertain : this.#clients.mayAccuse(first.client, second.client);
  }

  #storeRefusal(model: string | null, refusal: Refusal): void {
    this.#refusals.set(model, { ...refusal, sinceMs: this.#clock.monotonicMs() });
    const [oldest] = [...this.#refusals.keys()].filter((each) => each !== null);
    if (this.#refusals.size > maxModels && oldest !== undefined) this.#refusals.delete(oldest);
  }

  get #faultOfStreak(): string | null {
    const { count, first, isOfMany, lastClass } = this.#streak;
    const isBelieved = isOfMany || first === null || this.#clients.mayAccuse(first);
    const isRecent = this.#clock.monotonicMs() - this.#failedMs < quietMs;
    if (count < maxFailures || !isRecent || !isBelieved) return null;
    return `${count} jobs in a row have failed, the last one with ${lastClass}: the CLI is ready again when a job is answered`;
  }
}

/**
 * Records whether several clients have sent requests since the start of the service. Failures of one client alone may
 * be caused by that client, and must not block jobs of other clients.
 */
export class SeenClients {
  #first: ClientText | null = null;
  #areMany = false;

  /** Records that a client sent a request, even if it is refused. Returns whether this is the second client. */
  recordClient(client: ClientText): boolean {
    if (this.#areMany) return false;
    const holder = holderOf(client);
    this.#first ??= holder;
    this.#areMany = holder !== this.#first;
    return this.#areMany;
  }

  /**
   * Whether failures of these clients may count against all clients, because two clients failed or only one exists.
   */
  mayAccuse(client: ClientText, other = client): boolean {
    return !this.#areMany || holderOf(client) !== holderOf(other);
  }
}
