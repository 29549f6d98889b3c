import { z } from 'zod';

/** Number of deliveries in the answer. */
export const maxShownDeliveries = 100;

const deliveryStates = ['pending', 'delivered', 'failed'] as const;

const time = z.iso.datetime({ precision: 3 });

const deliveryEntry = z
  .strictObject({
    id: z.string().meta({ description: 'The `webhook-id` of all attempts.' }),
    type: z.string().meta({ description: 'Type of the notice, such as `budget.used_up`.' }),
    client: z
      .string()
      .nullable()
      .meta({ description: 'Client that the notice is about; null if it is about a group or the service.' }),
    receiver: z
      .string()
      .nullable()
      .meta({ description: 'Scheme, host and port of the receiver; null if none is configured any more.' }),
    status: z
      .enum(deliveryStates)
      .meta({ description: '`failed`: given up after a day, or because the receiver answered 410.' }),
    attempts: z.int().nonnegative(),
    created_at: time,
    attempted_at: time.nullable().meta({ description: 'Time of the last attempt; null before the first one.' }),
    next_attempt_at: time.nullable().meta({ description: 'null when the delivery has ended.' }),
    error: z.string().nullable().meta({ description: 'Why the last attempt has failed; null if it has not.' }),
  })
  .meta({ id: 'Delivery' });

export const deliveryList = z
  .strictObject({
    deliveries: z
      .array(deliveryEntry)
      .meta({ description: `The newest ${maxShownDeliveries} notices, the newest first.` }),
  })
  .meta({ id: 'DeliveryList' });
export type DeliveryList = z.infer<typeof deliveryList>;
