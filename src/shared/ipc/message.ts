import { z } from 'zod';
import { errorCodes } from '../errors.js';

const id = z.int().nonnegative();

/** A failure as it crosses the channel. */
export const failureSchema = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  details: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .readonly()
    .optional(),
  retryAfterSeconds: z.number().optional(),
});

/**
 * The envelope of every message. A call has a start, items, one end or failure, and can be cancelled;
 * `credit` tells the serving side that the caller has taken items. Ids are the caller's own.
 */
export const messageSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), id, name: z.string(), request: z.unknown() }),
  z.object({ kind: z.literal('cancel'), id }),
  z.object({ kind: z.literal('credit'), id, count: z.int().positive() }),
  z.object({ kind: z.literal('item'), id, item: z.unknown() }),
  z.object({ kind: z.literal('end'), id }),
  z.object({ kind: z.literal('fail'), id, failure: failureSchema }),
]);

export type Message = z.infer<typeof messageSchema>;
export type CallerMessage = Extract<Message, { kind: 'call' | 'cancel' | 'credit' }>;
export type ServerMessage = Exclude<Message, CallerMessage>;

/** The requests and items of one direction, by the name of the call. */
export type Calls = Readonly<Record<string, { readonly request: z.ZodType; readonly item: z.ZodType }>>;
export type RequestOf<C extends Calls, K extends keyof C> = z.infer<C[K]['request']>;
export type ItemOf<C extends Calls, K extends keyof C> = z.infer<C[K]['item']>;

/** What serves the calls of one direction. The signal is aborted when the caller cancels or goes away. */
export type Handlers<C extends Calls> = {
  readonly [K in keyof C]: (request: RequestOf<C, K>, signal: AbortSignal) => AsyncIterable<ItemOf<C, K>>;
};
