import { z } from 'zod';
import { keptErrors, readingErrors } from '../../shared/api/endpoints.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import { actor } from '../../shared/ipc/protocol.js';
import type { MetricTable } from '../../shared/tables/metrics.js';

/** Tables of the reservations, which both processes and the documents read. */

/** Longest reservation in seconds, and longest time until its begin. */
const maxSeconds = 7 * 86_400;
export const maxAheadMs = 366 * 86_400_000;
/** Shortest reservation in seconds. */
const minSeconds = 60;

export const reserveRequest = z
  .strictObject({
    group: z.string().max(64).meta({ description: 'Name of a group with a line in the keys file, without `@`.' }),
    slots: z.int().min(1).meta({
      description: 'Number of slots. All reservations at the same time may have at most the slots of the service.',
    }),
    begins_at: z.iso.datetime({ offset: true }).meta({ description: 'Begin, not in the past; at most a year away.' }),
    seconds: z.int().min(minSeconds).max(maxSeconds).meta({ description: 'Duration.' }),
  })
  .meta({ id: 'ReserveRequest' });
export type ReserveRequest = z.infer<typeof reserveRequest>;

export const reservationView = z
  .strictObject({
    id: z.string(),
    group: z.string(),
    slots: z.int(),
    begins_at: z.string(),
    ends_at: z.string(),
    is_active: z.boolean().meta({ description: 'Whether the slots are reserved now.' }),
    running: z.int().meta({ description: 'Running jobs of the group on this host.' }),
    is_stored: z.boolean().meta({ description: 'Whether the reservation survives a restart of the service.' }),
  })
  .meta({ id: 'Reservation' });
export type ReservationView = z.infer<typeof reservationView>;

export const reservationList = z
  .strictObject({ reservations: z.array(reservationView), request_id: z.string() })
  .meta({ id: 'ReservationList' });

export const cancelledReservation = z
  .strictObject({ success: z.literal(true), id: z.string(), request_id: z.string() })
  .meta({ id: 'CancelledReservation' });

export const route = '/reservations';

export const calls = {
  reserve: { request: z.object({ by: actor, order: reserveRequest }), answer: reservationView },
  listReservations: { request: z.object({}), answer: z.object({ reservations: z.array(reservationView) }) },
  cancelReservation: { request: z.object({ by: actor, id: z.string() }), answer: z.object({}) },
};

export const endpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'GET', route, errors: ['unauthorized', 'rate_limited'] },
    ...{ id: 'listReservations', summary: 'List the reservations' },
    description: 'All clients can see when slots are reserved for which group.',
    answer: reservationList,
    answerText: 'The reservations that have not ended, the earliest first.',
  },
  {
    ...{ method: 'POST', route, errors: [...readingErrors, 'store_unavailable'], success: 201 },
    ...{ alwaysNeedsKey: true, id: 'reserveSlots', summary: 'Reserve slots for a group' },
    description:
      'Needs the scope `admin`. During this time, the jobs of the group go before all others until so many of them run. Slots that they do not use go to the others, whose running jobs are never ended: a job of the group waits at most until the next slot is free. The same request again has no further effect.',
    body: {
      schema: reserveRequest,
      example: { group: 'bio101', slots: 4, begins_at: '2027-01-12T10:00:00Z', seconds: 7200 },
    },
    answer: reservationView,
    answerText: 'The reservation.',
  },
  {
    ...{ method: 'DELETE', route: `${route}/{id}`, errors: [...keptErrors, 'not_found'] },
    params: { id: 'Id of the reservation.' },
    ...{ alwaysNeedsKey: true, id: 'cancelReservation', summary: 'Cancel a reservation' },
    description: 'Needs the scope `admin`. A running reservation ends at once.',
    answer: cancelledReservation,
    answerText: 'The reservation was cancelled.',
  },
];

export const metrics = {
  reserved_slots: {
    type: 'gauge',
    labels: ['group'],
    help: 'Slots that are reserved now, by group.',
  },
} as const satisfies MetricTable;

export const logEvents = {
  slots_reserved: 'an administrator reserved slots for a group: id, group, slots, by, begins_at, ends_at',
  reservation_cancelled: 'an administrator cancelled a reservation: id, by',
  reservations_rejected: 'the stored reservations are damaged: none of them is valid',
} as const;
