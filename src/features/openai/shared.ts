import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import { continuedText, message } from '../../shared/job.js';
import type { MetricTable } from '../../shared/tables/metrics.js';
import type { Primary } from '../../worker/http/exchange.js';

/** What both processes know of stored responses. */

const nothing = z.object({});
/** Id of a response, and the client that requests it. */
const ownedKey = z.object({ id: z.string(), client: clientText });

/** Response of the Responses API to store. */
const responseToStore = z.object({
  id: z.string(),
  /** Id of the stored response that it follows. */
  previous: z.string().nullable(),
  /** Messages added to the previous response: its input, and the answer with its calls. */
  messages: z.array(message).readonly(),
  /** Data about the text for requests that continue it. */
  head: continuedText,
  /** JSON body for the client. */
  body: z.string(),
});

export const metrics = {
  stored_responses: { type: 'gauge', labels: [], help: 'Stored responses.' },
  stored_response_bytes: { type: 'gauge', labels: [], help: 'Text of all stored responses, bytes.' },
} as const satisfies MetricTable;

export const calls = {
  /**
   * Stores a response. Rejects with `not_found` if the previous response was removed, and with `validation_error` if
   * the whole text is too large.
   */
  storeResponse: { request: z.object({ client: clientText, response: responseToStore }), answer: nothing },
  /**
   * Reads a piece of the body, from a byte position. After the last piece, the text is empty. `bytes`: size of the
   * whole body.
   */
  responsePiece: {
    request: ownedKey.extend({ from: z.int().nonnegative() }),
    answer: z.object({ text: z.string(), bytes: z.int() }),
  },
  /**
   * Reads the messages that a stored response has answered, with those of the conversation before it, from this index on,
   * in either direction.
   */
  responseInput: {
    request: ownedKey.extend({ isReversed: z.boolean(), from: z.int().nonnegative().nullable() }),
    item: z.object({ index: z.int(), message }),
  },
  /** Rejects with `validation_error` if the text is larger than a conversation may be. */
  continuedText: { request: ownedKey, answer: continuedText },
  /** Removes a response. Responses that follow it are kept. */
  deleteResponse: { request: ownedKey, answer: nothing },
};

/** Makes the calls about stored responses. */
export type ResponseCalls = Pick<Peer<typeof calls, WorkerCalls>, 'call' | 'stream'>;

/** Returns the calls about stored responses. The channel knows the calls of all features, but its type does not. */
export function responseCalls(primary: Primary): ResponseCalls {
  return primary as Primary & ResponseCalls;
}
