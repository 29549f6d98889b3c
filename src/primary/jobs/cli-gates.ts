import { FairOrder } from '../../shared/fair-order.js';

interface LimitedCli {
  readonly name: string;
}

/** The jobs of one CLI: those under way, and those that wait to be. */
interface Gate {
  readonly limit: number;
  readonly waiting: FairOrder<CliPlace>;
  /** Clients that are passed over: they would wait inside for a slot, and keep others out. */
  readonly heldBack: Set<string>;
  readonly mustWait: (client: string) => boolean;
  readonly inside: Set<CliPlace>;
}

/**
 * Owns how many jobs of a CLI may be under way at once, where that is limited. A job waits here before it waits for a
 * slot, so that it keeps nobody from a slot whose CLI is free.
 */
export class CliGates {
  readonly #gates: ReadonlyMap<string, Gate>;

  /** `limits`: by the name of the CLI. `isAtLimit`: whether a client has as many slots as it may. */
  constructor(limits: Readonly<Record<string, number>>, isAtLimit: (client: string) => boolean = () => false) {
    const gateOf = (limit: number): Gate => {
      const heldBack = new Set<string>();
      const mustWait = (client: string) => isAtLimit(client) && heldBack.add(client).has(client);
      return { limit, waiting: new FairOrder(), inside: new Set(), heldBack, mustWait };
    };
    this.#gates = new Map(Object.entries(limits).map(([name, limit]) => [name, gateOf(limit)]));
  }

  /** Whether one more job of this CLI would be let through at once. */
  hasRoomFor({ name }: LimitedCli): boolean {
    const gate = this.#gates.get(name);
    return gate === undefined || gate.inside.size + gate.waiting.size < gate.limit;
  }

  /** A slot may have become free. */
  changed(): void {
    for (const gate of this.#gates.values()) if (gate.heldBack.size > 0) letIn(gate);
  }

  placeFor(client: string, { name }: LimitedCli): CliPlace {
    return new CliPlace(client, this.#gates.get(name) ?? null);
  }
}

/** The right of one job to be under way at its CLI. It must be left. */
export class CliPlace {
  readonly #client: string;
  readonly #gate: Gate | null;
  #proceed: () => void = () => {};
  #hasLeft = false;

  constructor(client: string, gate: Gate | null) {
    this.#client = client;
    this.#gate = gate;
  }

  /** Calls `proceed` at once, or when it is its turn: clients take turns. */
  enter(proceed: () => void): void {
    if (this.#gate === null) return proceed();
    if (this.#hasLeft) return; // its job has ended meanwhile
    this.#proceed = proceed;
    this.#gate.waiting.add(this.#client, this);
    letIn(this.#gate);
  }

  leave(): void {
    this.#hasLeft = true;
    if (this.#gate === null) return;
    if (!this.#gate.inside.delete(this)) this.#gate.waiting.remove(this.#client, this);
    letIn(this.#gate);
  }

  /** Called by its gate alone. */
  proceed(): void {
    this.#proceed();
  }
}

function letIn({ limit, waiting, inside, heldBack, mustWait }: Gate): void {
  for (const client of heldBack) {
    waiting.resume(client);
    heldBack.delete(client);
  }
  while (inside.size < limit) {
    const next = waiting.takeNext(mustWait);
    if (next === null) return;
    inside.add(next);
    next.proceed();
  }
}
