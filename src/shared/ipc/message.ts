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
 * The envelope of every message. A call is answered once, or streams items up to one end; either may fail instead.
 * A stream can be cancelled, and `credit` tells its serving side that the caller has taken items. Ids are the caller's own.
 */
export const messageSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), id, name: z.string(), request: z.unknown() }),
  z.object({ kind: z.literal('cancel'), id }),
  z.object({ kind: z.literal('credit'), id, count: z.int().positive() }),
  z.object({ kind: z.literal('answer'), id, answer: z.unknown() }),
  z.object({ kind: z.literal('item'), id, item: z.unknown() }),
  z.object({ kind: z.literal('end'), id }),
  z.object({ kind: z.literal('fail'), id, failure: failureSchema }),
]);

export type Message = z.infer<typeof messageSchema>;
export type CallerMessage = Extract<Message, { kind: 'call' | 'cancel' | 'credit' }>;
export type ServerMessage = Exclude<Message, CallerMessage>;

/** A call that is answered once. */
export interface Single {
  readonly request: z.ZodType;
  readonly answer: z.ZodType;
}

/** A call that is answered by items, one after the other, as long as there are any. */
export interface Streaming {
  readonly request: z.ZodType;
  readonly item: z.ZodType;
}

/** What can be called in one direction, by name. */
export type Calls = Readonly<Record<string, Single | Streaming>>;
export type Singles<C extends Calls> = { [K in keyof C]: C[K] extends Single ? K : never }[keyof C] & string;
export type Streams<C extends Calls> = { [K in keyof C]: C[K] extends Streaming ? K : never }[keyof C] & string;
export type RequestOf<C extends Calls, K extends keyof C> = z.infer<C[K]['request']>;
export type AnswerOf<C extends Calls, K extends keyof C> = C[K] extends Single ? z.infer<C[K]['answer']> : never;
export type ItemOf<C extends Calls, K extends keyof C> = C[K] extends Streaming ? z.infer<C[K]['item']> : never;

/** What serves the calls of one direction. The signal of a stream is aborted when the caller cancels or goes away. */
export type Handlers<C extends Calls> = {
  readonly [K in keyof C]: C[K] extends Streaming
    ? (request: RequestOf<C, K>, signal: AbortSignal) => AsyncIterable<ItemOf<C, K>>
    : (request: RequestOf<C, K>) => AnswerOf<C, K> | Promise<AnswerOf<C, K>>;
};
