import { type BoundsOf, noBounds } from '../../../src/primary/access/clients.js';
import type { BackgroundEntrant, Entrant, Ticket } from '../../../src/primary/jobs/ticket.js';
import { type RoomLimits, WaitingRoom } from '../../../src/primary/jobs/waiting-room.js';
import type { ClientText } from '../../../src/shared/client.js';
import { loginOf } from '../agents/logins.js';
import { FakeClock } from '../basics/fake-clock.js';

export function entrant(client: ClientText = 'key a', bytes = 1, differences: Partial<Entrant> = {}): Entrant {
  return { client, bytes, cli: loginOf('main'), lane: 'main', heldBy: () => null, ...differences };
}

/** Waiting room whose entrants differ only in their clients. */
export class TestRoom {
  readonly clock: FakeClock;
  readonly room: WaitingRoom;
  /** Background jobs that got slots, in order. */
  readonly started: string[] = [];
  /** Numbers of running and waiting jobs, after each change. */
  readonly counts: string[] = [];
  readonly #holders = new Set<Ticket | Entrant>();
  #turns = 0;

  constructor(limits: Partial<RoomLimits>, boundsOf: BoundsOf = noBounds, clock = new FakeClock()) {
    this.clock = clock;
    const all = { maxActive: 1, maxWaiting: 1_000_000, maxWaitingBytes: 1_000_000, cliLimits: {}, ...limits };
    this.room = new WaitingRoom(all, clock, boundsOf, () => {
      this.counts.push(`${this.room.active} ${this.room.waiting}`);
    });
  }

  readonly admit = (client: ClientText = 'key a', bytes = 1, differences: Partial<Entrant> = {}): Ticket =>
    this.room.admit(entrant(client, bytes, differences));

  /** Enters a ticket that waits for an earlier turn of its conversation. */
  readonly park = (client: ClientText = 'key a', bytes = 1): Ticket => {
    const turn: Entrant = entrant(client, bytes, {
      lane: `turn ${++this.#turns}`,
      heldBy: () => (this.#holders.has(turn) ? 'conversation' : null),
    });
    this.#holders.add(turn);
    return this.room.admit(turn);
  };

  readonly unpark = (ticket: Ticket): void => {
    this.#holders.delete(ticket.entrant);
    this.room.next();
  };

  /** Enters a background job, accepted now. */
  enter(name: string, client: ClientText = 'key a', differences: Partial<BackgroundEntrant> = {}): Ticket {
    const background = {
      since: this.clock.now(),
      isFollowed: false,
      isFirst: false,
      granted: () => void this.started.push(name),
    };
    return this.room.enter({ ...entrant(client), ...background, ...differences });
  }
}
