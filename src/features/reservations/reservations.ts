import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { PrimaryCore, ReservedSlots, Spender } from '../../primary/features/feature.js';
import type { JobGate } from '../../primary/jobs/ticket.js';
import type { OperatorAct } from '../../shared/acts.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { wholeService } from '../../shared/config/api-keys.js';
import { ignoreFailure, invalid, RelayError } from '../../shared/errors.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import { formatCount } from '../../shared/text/format.js';
import { type RecordsPlace, StoredRecords } from '../stores/stored-records.js';
import { type logEvents, maxAheadMs, type ReservationView, type ReserveRequest } from './shared.js';

const record = z.strictObject({
  ...{ id: z.string(), group: z.string(), slots: z.int().min(1) },
  ...{ beginsAt: z.number(), endsAt: z.number() },
});
type Reservation = z.infer<typeof record>;

/** Reservations that have not ended. */
const maxReservations = 100;
/** Time by which a begin may be in the past, in milliseconds, so that a reservation can begin now. */
const pastMs = 60_000;

export interface ReservationsParts {
  readonly clients: Pick<PrimaryCore['clients'], 'groups' | 'groupsOf' | 'countedGroupsOf'>;
  readonly room: PrimaryCore['room'];
  readonly place: RecordsPlace;
  /** Rejects if an act must be refused. */
  readonly beforeAct: (act: OperatorAct) => Promise<void>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Logger<LogEvent | keyof typeof logEvents>, 'info' | 'error'>;
}

/**
 * Owns the reservations. Times are compared with the clock whenever a slot is free, so that a clock that jumps has no
 * later effect. On several hosts, each keeps so many of its own slots.
 */
export class Reservations {
  readonly #parts: ReservationsParts;
  readonly #records: StoredRecords<Reservation>;

  constructor(parts: ReservationsParts) {
    this.#parts = parts;
    const { shared, path } = parts.place;
    this.#records = new StoredRecords({
      ...{ shared, path },
      clientOf: null,
      readRecord: (stored) => record.safeParse(stored).data ?? null,
      activate: () => {},
      onDamaged: () => parts.log.error('reservations_rejected', {}),
    });
  }

  /** Reserved slots by group, at present. */
  get reservedSlots(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.shown.map(({ group, slots }) => [group, slots]));
  }

  get #active(): Reservation[] {
    const now = this.#parts.clock.now();
    return this.#records.all.filter(({ beginsAt, endsAt }) => beginsAt <= now && now < endsAt);
  }

  /** Reserved slots by group, for the status: until the first of its reservations ends. */
  get shown(): ReservedSlots[] {
    const active = this.#active; // the time passes
    return Array.from(new Set(active.map(({ group }) => group)), (group) => {
      const groupReservations = active.filter((each) => each.group === group);
      const slots = groupReservations.reduce((sum, each) => sum + each.slots, 0);
      const running = this.#parts.room.runningAtGate(gateName(group));
      return { group, slots, running, until: timestamp(Math.min(...groupReservations.map(({ endsAt }) => endsAt))) };
    });
  }

  /** Returns a sentence about each group of others that has reserved slots at present, and jobs that run or wait. */
  precedenceOver({ client, groups }: Spender): string[] {
    const { clients, room } = this.#parts;
    const groupNames = clients
      .groupsOf(client, [...(groups ?? []), ...clients.countedGroupsOf(client)])
      .map(({ name }) => name);
    const foreign = this.shown.filter(
      ({ group, running }) => !groupNames.includes(group) && running + room.waitingAtGate(gateName(group)) > 0,
    );
    return foreign.map(
      ({ group, slots, until }) =>
        `${formatCount(slots, 'slot')} ${slots === 1 ? 'is' : 'are'} reserved for the group ${group} until ${until}, and its jobs go first.`,
    );
  }

  /** Returns a gate for each group of a client, which also counts the jobs that run before a reservation begins. */
  gatesOf(client: ClientText, jobGroups: readonly string[] = []): JobGate[] {
    const { clients } = this.#parts;
    const groups = clients.groupsOf(client, [...jobGroups, ...clients.countedGroupsOf(client)]);
    return groups
      .filter(({ name }) => name !== wholeService)
      .map(({ name }) => ({
        name: gateName(name),
        maxRunning: () => null,
        minRunning: () => this.#slotsOf(name),
      }));
  }

  list(): ReservationView[] {
    const now = this.#parts.clock.now();
    const open = this.#records.all.filter(({ endsAt }) => endsAt > now);
    return open.toSorted((a, b) => a.beginsAt - b.beginsAt).map((each) => this.#viewOf(each));
  }

  /** Stores a reservation. An equal one has no further effect. */
  async reserve(by: Actor, order: ReserveRequest): Promise<ReservationView> {
    const { clock, beforeAct, log } = this.#parts;
    const made = await this.#records.update((all) => {
      const now = clock.now();
      const wanted = recordOf(order);
      const open = all.filter(({ endsAt }) => endsAt > now);
      const equal = open.find((each) => keyOf(each) === keyOf(wanted));
      if (equal !== undefined) return { records: all, answer: { ...equal, isNew: false } };
      this.#checkOrder(wanted, now);
      if (open.length >= maxReservations)
        throw new RelayError('forbidden', `there are ${maxReservations} reservations: cancel one first`);
      this.#checkSlots(wanted, open);
      const reservation = { id: randomBytes(6).toString('hex'), ...wanted };
      const target = `${wanted.slots} slots for @${wanted.group}, ${timestamp(wanted.beginsAt)} to ${timestamp(wanted.endsAt)}`;
      const before = () => beforeAct({ act: 'slots_reserved', by: by.client, target, request_id: by.requestId });
      return { records: [...open, reservation], answer: { ...reservation, isNew: true }, before };
    });
    const view = this.#viewOf(made);
    const { id, group, slots, begins_at, ends_at } = view;
    if (made.isNew) log.info('slots_reserved', { id, group, slots, by: by.client, begins_at, ends_at });
    return view;
  }

  async cancel(by: Actor, id: string): Promise<void> {
    const { beforeAct, log } = this.#parts;
    await this.#records.update((all) => {
      const found = all.find((each) => each.id === id);
      if (found === undefined) throw new RelayError('not_found', 'no such reservation');
      const act = { act: 'reservation_cancelled', by: by.client, target: `${id} of @${found.group}` } as const;
      const before = () => beforeAct({ ...act, request_id: by.requestId });
      return { records: all.filter((each) => each !== found), answer: null, before };
    });
    log.info('reservation_cancelled', { id, by: by.client });
  }

  /** Reads the reservations of other hosts, and removes those that have ended. Rejects only with a defect. */
  async refresh(): Promise<void> {
    await this.#records.readRecords();
    const now = this.#parts.clock.now();
    if (this.#records.all.every(({ endsAt }) => endsAt > now)) return;
    const change = (all: readonly Reservation[]) => ({
      records: all.filter(({ endsAt }) => endsAt > now),
      answer: null,
    });
    await this.#records.update(change).catch(ignoreFailure);
  }

  /** Throws `validation_error` for an order that is not possible. */
  #checkOrder({ group, slots, beginsAt }: Omit<Reservation, 'id'>, now: number): void {
    const { clients, room } = this.#parts;
    if (beginsAt < now - pastMs) throw invalid('begins_at', 'is in the past');
    if (beginsAt > now + maxAheadMs) throw invalid('begins_at', 'must be at most a year away');
    const known = [...clients.groups].some(({ name }) => name === group);
    if (!known || group === wholeService)
      throw invalid('group', `no group ${group} has a line in the keys file, or it has ended`);
    const { maxActive } = room.limits;
    if (slots > maxActive) throw invalid('slots', `must be at most ${maxActive}, the slots of the service`);
  }

  /** Throws `validation_error` if at any time more slots would be reserved than there are. */
  #checkSlots(wanted: Omit<Reservation, 'id'>, open: readonly Reservation[]): void {
    const { maxActive } = this.#parts.room.limits;
    const overlapping = open.filter(({ beginsAt, endsAt }) => beginsAt < wanted.endsAt && wanted.beginsAt < endsAt);
    const begins = [wanted.beginsAt, ...overlapping.map(({ beginsAt }) => Math.max(beginsAt, wanted.beginsAt))];
    for (const at of begins) {
      const present = overlapping.filter(({ beginsAt, endsAt }) => beginsAt <= at && at < endsAt);
      const left = maxActive - present.reduce((sum, { slots }) => sum + slots, 0);
      if (wanted.slots > left)
        throw invalid('slots', `only ${left} of ${maxActive} slots are not reserved at ${timestamp(at)}`);
    }
  }

  #slotsOf(group: string): number {
    return this.#active.reduce((sum, each) => (each.group === group ? sum + each.slots : sum), 0);
  }

  #viewOf(reservation: Reservation): ReservationView {
    const { id, group, slots, beginsAt, endsAt } = reservation;
    const { room, place } = this.#parts;
    return {
      ...{ id, group, slots, begins_at: timestamp(beginsAt), ends_at: timestamp(endsAt) },
      is_active: this.#active.some((each) => each.id === id),
      running: room.runningAtGate(gateName(group)),
      is_stored: place.shared !== null || place.path !== null,
    };
  }
}

function recordOf({ group, slots, begins_at, seconds }: ReserveRequest): Omit<Reservation, 'id'> {
  const beginsAt = Date.parse(begins_at);
  return { group, slots, beginsAt, endsAt: beginsAt + seconds * 1000 };
}

function gateName(group: string): string {
  return `reservations of ${group}`;
}

function keyOf({ group, slots, beginsAt, endsAt }: Omit<Reservation, 'id'>): string {
  return JSON.stringify([group, slots, beginsAt, endsAt]);
}
