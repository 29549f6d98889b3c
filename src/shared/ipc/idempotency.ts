import { z } from 'zod';
import { publicCodes } from '../errors.js';

/** Schemas of recorded answers, which workers and the primary exchange to repeat an answer for the same key. */

/** Maximum size of a recorded body, because it crosses the channel and is stored for a day. */
export const maxRecordedBytes = 1024 * 1024;

/** Maximum size of one read of the body of a recorded answer. */
export const recordedPieceBytes = 32 * 1024;

const recordedHead = z.object({
  status: z.int(),
  /** Headers of the answer itself, excluding headers of the connection. */
  headers: z.record(z.string(), z.string()).readonly(),
  /** Error code in the body, for the log and the metrics. */
  error: z.enum(publicCodes).nullable(),
});
export type RecordedHead = Readonly<z.infer<typeof recordedHead>>;

export const recordedAnswer = recordedHead.extend({ body: z.string() }).readonly();
export type RecordedAnswer = z.infer<typeof recordedAnswer>;

/**
 * Recorded answer with the first piece of its body. The other pieces are read one by one, so that no process holds the
 * whole body.
 */
const recordedBegin = recordedHead
  .extend({
    /** First piece of the body. */
    begin: z.string(),
    /** Size of the whole body in UTF-8. */
    bytes: z.int(),
  })
  .readonly();
export type RecordedBegin = z.infer<typeof recordedBegin>;

/** `digest`: hash of the whole request. A request that differs in any way has another digest. */
export const claimOrder = z.object({ client: z.string(), key: z.string(), digest: z.string() }).readonly();
export type ClaimOrder = z.infer<typeof claimOrder>;

/** `from`: position of the next piece in the body of a recorded answer, in bytes. */
export const recordedPieceOrder = claimOrder.unwrap().extend({ from: z.int().nonnegative() }).readonly();
export type RecordedPieceOrder = z.infer<typeof recordedPieceOrder>;

export const claimItem = z.discriminatedUnion('type', [
  /** Reserves the key for the caller until the caller cancels the call or records the answer. */
  z.object({ type: z.literal('claimed'), claim: z.int() }),
  z.object({ type: z.literal('recorded'), answer: recordedBegin }),
]);
export type ClaimItem = z.infer<typeof claimItem>;
