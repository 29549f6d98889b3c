import { z } from 'zod';
import { imageTypes } from '../job.js';
import { conversationBody } from './chat.js';

/** One conversation in a list: no text but the start of its first message. */
const listedConversation = conversationBody
  .omit({ success: true, status: true, request_id: true })
  .extend({ title: z.string().meta({ description: 'The first 80 characters of the first message.' }) })
  .meta({ id: 'ListedConversation' });

export const conversationList = z
  .strictObject({
    conversations: z.array(listedConversation).meta({ description: 'The most recently active one first.' }),
    next_cursor: z.string().nullable().meta({ description: 'Sent as `cursor`, gets the next page; null on the last.' }),
    request_id: z.string(),
  })
  .meta({ id: 'ConversationList' });
export type ConversationList = z.infer<typeof conversationList>;

const spokenMessage = z.strictObject({
  role: z.enum(['user', 'assistant']),
  content: z.string(),
  images: z.array(z.strictObject({ media_type: z.enum(imageTypes), data: z.string() })).optional(),
});

export const conversationMessages = z
  .strictObject({
    conversation_id: z.string(),
    system: z.string().nullable(),
    messages: z.array(spokenMessage).meta({ description: 'Oldest first.' }),
    request_id: z.string(),
  })
  .meta({ id: 'ConversationMessages' });
export type ConversationMessages = z.infer<typeof conversationMessages>;

export const forkRequest = z
  .strictObject({
    from: z.int().positive().optional().meta({
      description: 'How many messages go over: the end of a turn, so an even number. All of them where it is left out.',
    }),
  })
  .meta({ id: 'ForkRequest' });
