import { z } from 'zod';
import { wireError } from '../errors.js';

const id = z.int().nonnegative();

/**
 * The envelope of every message. A call is answered once, or by a stream of items with one end; either may fail instead.
 * A stream can be cancelled, and `credit` tells its server that the caller has taken items. Ids belong to the caller.
 */
export const messageSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), id, name: z.string(), request: z.unknown() }),
  z.object({ kind: z.literal('cancel'), id }),
  z.object({ kind: z.literal('credit'), id, count: z.int().positive() }),
  z.object({ kind: z.literal('answer'), id, answer: z.unknown() }),
  z.object({ kind: z.literal('item'), id, item: z.unknown() }),
  z.object({ kind: z.literal('end'), id }),
  z.object({ kind: z.literal('fail'), id, failure: wireError }),
]);

export type PeerMessage = z.infer<typeof messageSchema>;
export type CallMessage = Extract<PeerMessage, { kind: 'call' }>;

/** What one peer sends in one turn of its loop travels together. */
export const packetSchema = z.array(messageSchema);

/** A call that is answered once. */
export interface UnaryCall {
  readonly request: z.ZodType;
  readonly answer: z.ZodType;
}

/** A call that is answered by any number of items. */
export interface StreamCall {
  readonly request: z.ZodType;
  readonly item: z.ZodType;
}

/** What can be called in one direction, by name. */
export type Calls = Readonly<Record<string, UnaryCall | StreamCall>>;
export type UnaryNames<C extends Calls> = { [K in keyof C]: C[K] extends UnaryCall ? K : never }[keyof C] & string;
export type StreamNames<C extends Calls> = { [K in keyof C]: C[K] extends StreamCall ? K : never }[keyof C] & string;
export type RequestOf<C extends Calls, K extends keyof C> = z.infer<C[K]['request']>;
export type AnswerOf<C extends Calls, K extends keyof C> = C[K] extends UnaryCall ? z.infer<C[K]['answer']> : never;
export type ItemOf<C extends Calls, K extends keyof C> = C[K] extends StreamCall ? z.infer<C[K]['item']> : never;

/** What serves the calls of one direction. The signal of a stream is aborted when its caller cancels or goes away. */
export type Handlers<C extends Calls> = {
  readonly [K in keyof C]: C[K] extends StreamCall
    ? (request: RequestOf<C, K>, signal: AbortSignal) => AsyncIterable<ItemOf<C, K>>
    : Record<string, never> extends AnswerOf<C, K>
      ? (request: RequestOf<C, K>) => void // an answer that says nothing need not be returned
      : (request: RequestOf<C, K>) => AnswerOf<C, K> | Promise<AnswerOf<C, K>>;
};
