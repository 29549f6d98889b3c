import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { recordsPlace } from '../stores/stored-records.js';
import { Reservations } from './reservations.js';
import { type calls, metrics } from './shared.js';

/** Interval at which reservations of other hosts are read, and ended ones are removed. */
const refreshMs = 1000;

/** Creates the part that reserves slots for groups. */
export const createReservations = usingStore((core) => {
  const { host, clients, room, beforeAct } = core;
  const { clock, log } = host;
  const place = recordsPlace(core, 'reservations');
  const reservations = new Reservations({ clients, room, place, beforeAct, clock, log });
  const handlers: Handlers<typeof calls> = {
    reserve: ({ by, order }) => reservations.reserve(by, order),
    listReservations: () => ({ reservations: reservations.list() }),
    cancelReservation: async ({ by, id }) => {
      await reservations.cancel(by, id);
      return {};
    },
  };
  const { help, labels } = metrics.reserved_slots;
  return {
    job: {
      gatesOf: ({ client, groups }) => reservations.gatesOf(client, groups),
      precedenceOver: (request) => reservations.precedenceOver(request),
    },
    get reservedSlots() {
      return reservations.shown;
    },
    handlers,
    gauges: [{ name: 'reserved_slots', help, labels, read: () => reservations.reservedSlots }],
    storedKinds: [storedReservations(place.place)],
    restored: () => reservations.refresh(),
    start: () => void clock.every(refreshMs, () => void reservations.refresh()),
  };
});

function storedReservations(place: StoredKind['place']): StoredKind {
  return {
    ...{ kind: 'reservations', content: 'names of groups with reserved slots and times', place },
    ...{ keptMs: null, until: 'until the reservation ends', readers: ['everybody'] },
    ...{ export: 'GET /reservations', deletion: 'DELETE /reservations/{id}', variables: [] },
  };
}
