import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';

/** A refusal, as far as it speaks against the account or a model. */
export interface Refusal {
  readonly client: string;
  /** When its job began, monotonic. */
  readonly beganMs: number;
  /** A code says so. Else the request may be the cause. */
  readonly isCertain: boolean;
}

interface FirstRefusal extends Refusal {
  readonly sinceMs: number;
}

/** Jobs that have failed one after the other. */
interface Streak {
  readonly count: number;
  /** Whose job failed first; null where no request can be the cause. */
  readonly first: string | null;
  /** A job of another client has failed too, or one failed whatever it asked for. */
  readonly isOfMany: boolean;
  readonly lastClass: string;
}

const noStreak: Streak = { count: 0, first: null, isOfMany: false, lastClass: '' };
/** Bogus names of models must not fill memory. */
const maxModels = 64;
const maxFailures = 3;
/** Without jobs for a CLI that is not ready, none of them could show that it is well again. */
const quietMs = 5 * 60_000;
const credentialRefused =
  "the model CLI's credential was refused when a job used it: log in anew and recheck, or replace it and restart";

/**
 * Owns what jobs have shown of one model CLI: of its credential, of its account and models, and of its program. The jobs of
 * one client alone show little if there are others: its own requests may be what makes them fail.
 */
export class Evidence {
  readonly #clock: Clock;
  readonly #clients: SeenClients;
  /** The job that began last decides, because a credential may be replaced while others run. */
  #credential = { isRefused: false, beganMs: Number.NEGATIVE_INFINITY };
  /** When a job was first refused for the credential, by a code or in words, if none was answered since. */
  #suspectedMs: number | null = null;
  /** The first refusal in a row, by model; null for the account. */
  readonly #refusals = new Map<string | null, FirstRefusal>();
  #streak = noStreak;
  #failedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, clients: SeenClients) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** The CLI knows that it has a credential; only the API knows whether it is still valid. */
  get isCredentialRefused(): boolean {
    return this.#credential.isRefused;
  }

  /** A check that says so, too, decides. */
  get isCredentialSuspected(): boolean {
    return this.#suspectedMs !== null;
  }

  /** Why the CLI is not ready; null where it is, as far as jobs have shown. */
  get fault(): string | null {
    return this.isCredentialRefused ? credentialRefused : this.#faultOfStreak;
  }

  suspectCredential(): void {
    this.#suspectedMs ??= this.#clock.monotonicMs();
  }

  /** A code refused the credential to a job that began then. Returns whether that is news. */
  refuseCredential(beganMs: number): boolean {
    return this.#judgeCredential(beganMs, true);
  }

  /**
   * Whether a refusal is the second in a row: its job began after the first one. Where no code says so, the two must be of
   * two clients, if there are two. `model` is null for the account.
   */
  confirms(model: string | null, refusal: Refusal): boolean {
    const first = this.#refusals.get(model);
    if (first !== undefined && refusal.beganMs >= first.sinceMs && this.#isConfirmed(first, refusal)) return true;
    if (first === undefined || (refusal.isCertain && !first.isCertain)) this.#note(model, refusal);
    return false;
  }

  /**
   * A job has failed for a fault of the program. `failureClass` is a word of ours, never the model's; `client` is null for
   * a failure that no request can cause. Returns whether that makes the CLI not ready, until a job is answered.
   */
  failed(failureClass: string, client: string | null): boolean {
    const wasFailing = this.#faultOfStreak !== null;
    const { count, first: known, isOfMany } = this.#streak;
    const first = known ?? client;
    const isOther = client === null || (first !== null && holderOf(client) !== holderOf(first));
    this.#streak = { count: count + 1, first, isOfMany: isOfMany || isOther, lastClass: failureClass };
    this.#failedMs = this.#clock.monotonicMs();
    return !wasFailing && this.#faultOfStreak !== null;
  }

  /** A job of this model that began then was answered. Returns whether the credential counted as refused until now. */
  answered(model: string, beganMs: number): boolean {
    this.#streak = noStreak;
    if (this.#suspectedMs !== null && beganMs >= this.#suspectedMs) this.#suspectedMs = null;
    for (const each of [null, model]) {
      const first = this.#refusals.get(each);
      if (first !== undefined && beganMs >= first.sinceMs) this.#refusals.delete(each);
    }
    return this.#judgeCredential(beganMs, false);
  }

  /** Jobs of this model are let through again; null: all jobs. */
  forget(model: string | null): void {
    this.#refusals.delete(model);
    if (model === null) this.#suspectedMs = null;
  }

  /** An operator asks for another try: no refusal has a first one any more. */
  forgetRefusals(): void {
    this.#refusals.clear();
    this.#suspectedMs = null;
  }

  /** A forced check begins: the credential may have been replaced, and the next job alone decides about the program. */
  reset(beganMs: number): void {
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

  #note(model: string | null, refusal: Refusal): void {
    this.#refusals.set(model, { ...refusal, sinceMs: this.#clock.monotonicMs() });
    const [oldest] = [...this.#refusals.keys()].filter((each) => each !== null);
    if (this.#refusals.size > maxModels && oldest !== undefined) this.#refusals.delete(oldest);
  }

  get #faultOfStreak(): string | null {
    const { count, first, isOfMany, lastClass } = this.#streak;
    const isBelieved = isOfMany || first === null || this.#clients.mayAccuse(first);
    const isRecent = this.#clock.monotonicMs() - this.#failedMs < quietMs;
    if (count < maxFailures || !isRecent || !isBelieved) return null;
    return `${count} jobs in a row have failed, the last one with ${lastClass}: it is ready again when one is answered`;
  }
}

/**
 * Owns whether more than one client has asked this service since its start. What only the requests of one client show
 * of a model CLI may be that client's own doing: it stops no job of another.
 */
export class SeenClients {
  #first: string | null = null;
  #areMany = false;

  /** This client asks for a job, whatever becomes of it. Returns whether it is the second one. */
  saw(client: string): boolean {
    if (this.#areMany) return false;
    const holder = holderOf(client);
    this.#first ??= holder;
    this.#areMany = holder !== this.#first;
    return this.#areMany;
  }

  /** Whether failures of these clients may count against all: they are two, or no other has ever asked. */
  mayAccuse(client: string, other = client): boolean {
    return !this.#areMany || holderOf(client) !== holderOf(other);
  }
}
