import { z } from 'zod';
import { publicCodes } from './errors.js';

/** An answer as it crosses between worker and primary, to be sent again for the same key. */

/** Of a body that is recorded. It crosses the channel, and stays for a day. */
export const maxRecordedBytes = 1024 * 1024;

export const recordedAnswer = z
  .object({
    status: z.int(),
    /** Those that belong to the answer, and not to the exchange. */
    headers: z.record(z.string(), z.string()).readonly(),
    body: z.string(),
    /** Code of the error that it tells, for the log and the counts. */
    error: z.enum(publicCodes).nullable(),
  })
  .readonly();
export type RecordedAnswer = z.infer<typeof recordedAnswer>;

/** `digest` stands for the whole request: what differs in anything else is another one. */
export const claimOrder = z.object({ client: z.string(), key: z.string(), digest: z.string() }).readonly();
export type ClaimOrder = z.infer<typeof claimOrder>;

export const claimItem = z.discriminatedUnion('type', [
  /** The key is the caller's until it cancels the call, or has the answer kept. */
  z.object({ type: z.literal('claimed'), claim: z.int() }),
  z.object({ type: z.literal('recorded'), answer: recordedAnswer }),
]);
export type ClaimItem = z.infer<typeof claimItem>;
