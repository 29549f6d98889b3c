import { z } from 'zod';
import {
  answerSchema,
  effort,
  fallbackField,
  incomplete,
  model,
  modelText,
  requestFiles,
  requestImages,
  shownThoughts,
  streamFlag,
  structuredValue,
  thoughtsFlag,
  usageBody,
} from './ask.js';

/**
 * Request of POST /chat. `system` is only for a new conversation, and the older payload with `messages` is rejected.
 */
export const chatRequest = z
  .strictObject({
    message: modelText.meta({ description: 'The next message of the user.', examples: ['What is my name?'] }),
    conversation_id: z
      .string('must be a string')
      .optional()
      .meta({ description: 'The conversation to continue; without it, a new one begins.' }),
    version_of: z.string('must be a string').optional().meta({
      description:
        'For a new conversation only: the conversation whose first message this one replaces. The new one is a version of it. A title that the client has set is copied; without one, the title is the beginning of the new first message.',
    }),
    system: modelText.optional().meta({ description: 'Instructions, for a new conversation only.' }),
    model: model.optional(),
    schema: answerSchema.optional(),
    images: requestImages.optional(),
    files: requestFiles.optional(),
    effort: effort.optional(),
    thoughts: thoughtsFlag.optional(),
    stream: streamFlag.optional(),
  })
  .refine((body) => body.conversation_id === undefined || body.system === undefined, {
    path: ['system'],
    message: 'is only accepted for a new conversation: leave out conversation_id, or system',
    when: () => true,
  })
  .refine((body) => body.conversation_id === undefined || body.version_of === undefined, {
    path: ['version_of'],
    message: 'is only for a new conversation: leave out conversation_id, or version_of',
    when: () => true,
  })
  .meta({ id: 'ChatRequest' });
export type ChatRequest = z.infer<typeof chatRequest>;

const origins = z.array(z.strictObject({ conversation_id: z.string(), message_count: z.int().nonnegative() })).meta({
  description:
    'The conversations that this one is a version of, by forks or `version_of`, oldest first: up to `message_count`, it has the same messages. Empty if it is no version. An origin may be deleted.',
});

/** Error message for a client that still sends the older payload. */
export const legacyPayload = 'a list of messages is not accepted: send message, and conversation_id to continue';

const count = z.int().nonnegative();
const time = z.iso.datetime({ precision: 3 });
const tokensUsed = count.meta({
  description:
    "Estimated number of tokens of the conversation's whole text, counted by the o200k tokenizer, which may differ from the model's.",
});

export const chatResult = z
  .strictObject({
    success: z.literal(true),
    conversation_id: z.string(),
    response: z.string(),
    structured: structuredValue.optional(),
    incomplete: incomplete.optional(),
    thoughts: shownThoughts.optional(),
    message: z.strictObject({ role: z.literal('assistant'), content: z.string() }),
    model: z.string().nullable(),
    fallback: fallbackField.optional(),
    usage: usageBody.nullable(),
    queue_ms: count,
    duration_ms: count,
    message_count: count,
    tokens_used: tokensUsed,
    last_activity_at: time,
    expires_at: time,
    request_id: z.string(),
  })
  .meta({ id: 'ChatResult' });
export type ChatResult = z.infer<typeof chatResult>;

const openTurn = z
  .strictObject({
    job_id: z.string(),
    status: z.enum(['queued', 'running']),
    background: z.boolean().meta({
      description:
        'Whether `GET /jobs/{job_id}/events` streams the answer. Otherwise only the request that began the turn receives it.',
    }),
    title: z.string().nullable().meta({
      description:
        'The first 80 characters of the message, in one line. Null if clients may not read stored conversations.',
    }),
  })
  .nullable()
  .meta({
    description:
      'The turn that runs on this host, otherwise the first one that waits; null if there is none. Its messages are not in the conversation before it has ended.',
  });

export const conversationBody = z
  .strictObject({
    success: z.literal(true),
    conversation_id: z.string(),
    status: z.literal('active'),
    title: z.string().nullable().meta({
      description:
        'The title that the client has set, otherwise the first 80 characters of its first message, in one line. Null if clients may not read stored conversations.',
    }),
    origins,
    open_turn: openTurn,
    message_count: count,
    tokens_used: tokensUsed,
    created_at: time,
    last_activity_at: time,
    expires_at: time,
    request_id: z.string(),
  })
  .meta({ id: 'Conversation' });
export type ConversationBody = z.infer<typeof conversationBody>;

export const deletedBody = z
  .strictObject({
    success: z.literal(true),
    conversation_id: z.string(),
    deleted: z.literal(true),
    request_id: z.string(),
  })
  .meta({ id: 'DeletedConversation' });
export type DeletedBody = z.infer<typeof deletedBody>;
