import { z } from 'zod';
import { publicCodes } from '../errors.js';

/** An answer as it crosses between worker and primary, to be sent again for the same key. */

/** Of a body that is recorded. It crosses the channel, and stays for a day. */
export const maxRecordedBytes = 1024 * 1024;

/** What is read at once of the body of a recorded answer. */
export const recordedPieceBytes = 32 * 1024;

const recordedHead = z.object({
  status: z.int(),
  /** Those that belong to the answer, and not to the exchange. */
  headers: z.record(z.string(), z.string()).readonly(),
  /** The error code in its body, for the log and the counts. */
  error: z.enum(publicCodes).nullable(),
});
export type RecordedHead = Readonly<z.infer<typeof recordedHead>>;

export const recordedAnswer = recordedHead.extend({ body: z.string() }).readonly();
export type RecordedAnswer = z.infer<typeof recordedAnswer>;

/** A recorded answer with the first piece of its body. The rest is read piece by piece, so that no process holds all of it. */
export const recordedBegin = recordedHead
  .extend({
    /** The first piece of the body. */
    begin: z.string(),
    /** Of the whole body, in UTF-8. */
    bytes: z.int(),
  })
  .readonly();
export type RecordedBegin = z.infer<typeof recordedBegin>;

/** `digest` stands for the whole request: what differs in anything else is another one. */
export const claimOrder = z.object({ client: z.string(), key: z.string(), digest: z.string() }).readonly();
export type ClaimOrder = z.infer<typeof claimOrder>;

/** Where in the body of a recorded answer, in bytes, the next piece begins. */
export const recordedPieceOrder = claimOrder.unwrap().extend({ from: z.int().nonnegative() }).readonly();
export type RecordedPieceOrder = z.infer<typeof recordedPieceOrder>;

export const claimItem = z.discriminatedUnion('type', [
  /** The key belongs to the caller until it cancels the call, or has recorded the answer. */
  z.object({ type: z.literal('claimed'), claim: z.int() }),
  z.object({ type: z.literal('recorded'), answer: recordedBegin }),
]);
export type ClaimItem = z.infer<typeof claimItem>;
