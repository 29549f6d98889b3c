import { z } from 'zod';
import { modelText } from '../../shared/api/ask.js';
import { clientText } from '../../shared/client.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import { allEfforts, operations, thinkingForms } from '../../shared/job.js';

/** Messages to an answer that is being written, and its early end. */

export const steerRequest = z
  .strictObject({
    text: modelText.optional().meta({ description: 'The message. Needed unless `interrupt` is true.' }),
    interrupt: z.boolean('must be true or false').optional().meta({
      description: 'Whether the answer ends now. What the model has said so far is its answer, and is stored.',
    }),
  })
  .refine(({ text, interrupt }) => text !== undefined || interrupt === true, {
    path: ['text'],
    message: 'must be sent, unless interrupt is true',
  })
  .meta({ id: 'SteerRequest' });

const reached = z.enum(['turn', 'next_turn']);

const steered = z
  .strictObject({
    success: z.literal(true),
    reached: reached.nullable().meta({
      description:
        '`turn`: the model has the message, and its answer goes on. `next_turn`: the message is the next turn of the conversation, as a background job. Null if no message was sent.',
    }),
    interrupted: z.boolean().meta({ description: 'Whether this request has ended the answer.' }),
    job_id: z.string().nullable().meta({ description: 'With `next_turn`: the job with the answer to the message.' }),
    request_id: z.string(),
  })
  .meta({ id: 'Steered' });
export type Steered = z.infer<typeof steered>;

/** Place of an answer. `id`: that of a conversation or a job. */
const place = z.object({ of: z.enum(['conversation', 'job']), id: z.string(), client: clientText });

const nextTurn = z.object({
  conversationId: z.string(),
  model: z.string().nullable(),
  /** Whether only this model may answer. */
  refusesFallback: z.boolean(),
  schema: z.string().nullable(),
  effort: z.enum(allEfforts).nullable(),
  thinking: z.enum(thinkingForms).nullable(),
  /** Whether a client follows the conversation. */
  isFollowed: z.boolean(),
  /** What the conversation begins with if its first turn, which has not ended, fails; null after the first turn. */
  beginning: z.object({ system: z.string().nullable(), versionOf: z.string().nullable() }).nullable(),
});
export type NextTurn = z.infer<typeof nextTurn>;
export type TurnPlace = z.infer<typeof place>;

/** `text`: null if the answer only ends. `key`: the Idempotency-Key. */
const steerOrder = z.object({ text: z.string().nullable(), interrupt: z.boolean(), key: z.string().nullable() });
export type SteerOrder = z.infer<typeof steerOrder>;

/** `next`: null if the turn cannot have a next one. `nextId`: id for the job of the next turn; null without a key. */
const openTurn = z.object({
  jobId: z.string(),
  operation: z.enum(operations),
  next: nextTurn.nullable(),
  nextId: z.string().nullable(),
});

/** `repeated`: id of the job with the answer to the message; null if the running turn has got the message. */
const repeatedMessage = z.object({ repeated: z.string().nullable() });
export type RepeatedMessage = z.infer<typeof repeatedMessage>;

/** Whether the model has the message, and whether the answer has already ended early for it. */
const fate = z.object({ isAdded: z.boolean(), isInterrupted: z.boolean() });
export type Fate = z.infer<typeof fate>;

export const calls = {
  /**
   * Finds the open job, and the settings for the next turn; or where a message has arrived that was sent with the same
   * Idempotency-Key before. Rejects with `validation_error` if the answer must end early and cannot, and like a job if the
   * client may not start one.
   */
  findTurn: { request: place.extend(steerOrder.shape), answer: z.union([openTurn, repeatedMessage]) },
  /**
   * Sends a message to the running turn. Yields once, when the model has it, or when it may become the next turn. While
   * the stream is open, no later message becomes a turn.
   */
  holdTurn: {
    request: steerOrder.extend({ jobId: z.string(), client: clientText, nextId: z.string().nullable() }),
    item: fate,
  },
  /** Ends the answer of a job. */
  interruptTurn: {
    request: z.object({ jobId: z.string(), client: clientText }),
    answer: z.object({ isInterrupted: z.boolean() }),
  },
};

const common = {
  method: 'POST',
  errors: [
    ...(['validation_error', 'unauthorized', 'forbidden', 'not_found', 'turn_ended', 'payload_too_large'] as const),
    ...(['rate_limited', 'concurrency_limited', 'shutting_down', 'store_unavailable'] as const),
    ...(['idempotency_in_progress', 'idempotency_mismatch'] as const),
  ],
  body: { schema: steerRequest, example: { text: 'Only the ones in Europe, please.' } },
  onceText: 'A repeated request with the same key sends the message once.',
  answer: steered,
  answerText: 'Whether the model has the message, or which job answers it.',
} as const;

export const endpoints = [
  {
    ...common,
    route: '/chat/{conversation_id}/steer',
    id: 'steerChat',
    summary: 'Send a message while an answer is being written',
    description:
      'The message reaches the running turn if its model CLI takes one at that point; otherwise it is the next turn, with the same model and options. 409 `turn_ended` if no turn runs or waits: send `POST /chat`.',
    params: { conversation_id: 'The conversation.' },
  },
  {
    ...common,
    route: '/jobs/{job_id}/steer',
    id: 'steerJob',
    summary: 'Send a message to a job while it is answered',
    description: 'As `POST /chat/{conversation_id}/steer`. A job without a stored conversation has no next turn.',
    params: { job_id: 'The job: that of an open request, or a background job.' },
  },
] as const satisfies readonly FeatureEndpoint[];
