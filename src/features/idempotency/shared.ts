import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import { publicCodes } from '../../shared/errors.js';

/** Recorded answers, which workers and the primary exchange to repeat an answer for the same key. */

export const keyHeader = 'Idempotency-Key';

export const requestHeaders = {
  [keyHeader]: z
    .string()
    .meta({
      description:
        'A name of 1 to 255 printable ASCII characters for this request, bare or as a quoted string. If the same client sends the request again within 24 hours, it receives the first answer, and no model runs.',
    })
    .optional(),
};

/** Maximum size of a recorded body, because it crosses the channel and is stored for a day. */
export const maxRecordedBytes = 1024 * 1024;

const recordedHead = z.object({
  status: z.int(),
  /** Headers of the answer itself, excluding headers of the connection. */
  headers: z.record(z.string(), z.string()).readonly(),
  /** Error code in the body, for the log and the metrics. */
  error: z.enum(publicCodes).nullable(),
});

const recordedAnswer = recordedHead.extend({ body: z.string() }).readonly();

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

/** `digest`: hash of the whole request. A request that differs in any way has another digest. */
const claimOrder = z.object({ client: clientText, key: z.string(), digest: z.string() }).readonly();
export type ClaimOrder = z.infer<typeof claimOrder>;

/** `from`: position of the next piece in the body of a recorded answer, in bytes. */
const recordedPieceOrder = claimOrder.unwrap().extend({ from: z.int().nonnegative() }).readonly();
export type RecordedPieceOrder = z.infer<typeof recordedPieceOrder>;

const claimItem = z.discriminatedUnion('type', [
  /** Reserves the key for the caller until the caller cancels the call or records the answer. */
  z.object({ type: z.literal('claimed'), claim: z.int() }),
  z.object({ type: z.literal('recorded'), answer: recordedBegin }),
]);
export type ClaimItem = z.infer<typeof claimItem>;

export const calls = {
  /**
   * Claims a key. The stream has one item; if that is a claim, it stays open, and cancelling the call releases the
   * claim.
   */
  claim: { request: claimOrder, item: claimItem },
  /** Records an answer. Resolves with whether it was stored; the claim has then ended. */
  record: {
    request: z.object({ claim: z.int(), answer: recordedAnswer }),
    answer: z.object({ isRecorded: z.boolean() }),
  },
  /** Reads a piece of the body of a recorded answer; empty if the answer was removed. */
  recordedPiece: { request: recordedPieceOrder, answer: z.object({ text: z.string() }) },
};
