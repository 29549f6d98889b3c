import type { BreakerReason, QuotaWindow } from '../../shared/breaker.js';
import type { Clock } from '../../shared/clock.js';
import type { RelayError } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { AtLeastOne, ModelRouter, OwnModel } from '../cli/model-router.js';
import { Breaker } from './breaker.js';
import type { CircuitStatus } from './circuit.js';
import type { SeenClients } from './seen-clients.js';

/** What holds jobs back. */
export interface OpenCircuit {
  /** Null for the whole account. */
  readonly model: string | null;
  readonly reason: BreakerReason;
  /** Milliseconds since the epoch. */
  readonly until: number | null;
}

const allClosed: CircuitStatus = { state: 'closed', model: null, reason: null, since: null, until: null };

/** Owns a breaker for each model CLI, in the order of these. A job is the matter of its own CLI's. */
export class Breakers {
  readonly all: AtLeastOne<Breaker>;
  readonly #router: ModelRouter;
  /** Those who have asked for a job of any CLI. */
  readonly clients: SeenClients;
  readonly #admitted = new WeakMap<JobRequest, OwnModel>();

  constructor(clis: AtLeastOne<unknown>, router: ModelRouter, clock: Clock, clients: SeenClients) {
    const usual = router.split(router.choice.fallback);
    const create = (index: number) => {
      const isUsual = !router.isPlain && index === usual.index;
      const modelOf = (request: JobRequest) => this.routeOf(request).model ?? '';
      return new Breaker(clock, modelOf, (isUsual ? usual.model : null) ?? '', clients);
    };
    const [, ...others] = clis;
    this.all = [create(0), ...others.map((_, at) => create(at + 1))];
    this.#router = router;
    this.clients = clients;
  }

  /** Where a job goes, or where it went when it was admitted: the models of an API key may change meanwhile. */
  routeOf(request: JobRequest): OwnModel {
    return this.#admitted.get(request) ?? this.#router.route(request);
  }

  of(request: JobRequest): Breaker {
    return this.all[this.routeOf(request).index] ?? this.all[0];
  }

  /** As those of `Breaker`. */
  refusal(request: JobRequest): RelayError | null {
    const isSecond = this.clients.saw(request.client);
    if (isSecond) for (const breaker of this.all) breaker.probe(); // what holds jobs back may be the first one's doing
    return this.of(request).refusal(request);
  }

  admitted(request: JobRequest): void {
    this.#admitted.set(request, this.#router.route(request));
    this.of(request).admitted(request);
  }

  ended(request: JobRequest, end: JobEnd, hadSlot: boolean): JobEnd {
    queueMicrotask(() => this.#admitted.delete(request)); // whoever is told of its end now still learns where it went
    return this.of(request).ended(request, end, hadSlot);
  }

  /** For all jobs, then for each model that is held; of several CLIs, an account that is held has the CLI's name. */
  get status(): readonly [CircuitStatus, ...CircuitStatus[]] {
    if (this.#router.isPlain) return this.all[0].status;
    const isHeld = ({ state }: CircuitStatus) => state !== 'closed';
    return [
      allClosed,
      ...this.all.flatMap((breaker, at) => breaker.status.filter(isHeld).map((of) => this.named(at, of))),
    ];
  }

  /** What keeps all jobs of one CLI from being started, or those that name no model. */
  openFor(index: number): readonly OpenCircuit[] {
    const usual = this.#router.split(this.#router.choice.fallback);
    const isUsual = (model: string) => model === '' || (index === usual.index && model === usual.model);
    return (this.all[index]?.status ?? []).flatMap(({ state, model, reason, until }) => {
      if (state !== 'open' || reason === null || !(model === null || isUsual(model))) return [];
      return [{ model: model === null ? null : this.#nameOf(index, model), reason, until }];
    });
  }

  /** With the public name of the model that it holds. */
  named(index: number, status: CircuitStatus): CircuitStatus {
    return this.#router.isPlain ? status : { ...status, model: this.#router.publicName(index, status.model || null) };
  }

  /** Never empty: jobs that name no model have one too. */
  #nameOf(index: number, model: string): string {
    const { fallback, label } = this.#router.choice;
    return this.#router.publicName(index, model || null) ?? fallback ?? label ?? 'default';
  }

  get windows(): readonly QuotaWindow[] {
    return this.all.flatMap(({ windows }) => windows);
  }

  stop(): void {
    for (const breaker of this.all) breaker.stop();
  }
}
