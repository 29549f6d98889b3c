import { z } from 'zod';
import { imageTypes } from '../job.js';
import { documentTypes } from '../tables/document-types.js';
import { modelText, usageBody } from './ask.js';
import { conversationBody } from './chat.js';

/** Conversation in a list: without text except its title. */
const listedConversation = conversationBody
  .omit({ success: true, status: true, request_id: true })
  .extend({
    title: z.string().meta({
      description:
        'The title that the client has set, otherwise the first 80 characters of the first message, in one line: a space replaces each line break and other control character.',
    }),
    match: z
      .strictObject({
        message: z.int().nullable().meta({
          description: 'Index of the message in `messages`, from 0; null for the title, which contains all words then.',
        }),
        text: z.string().meta({ description: 'The title, or the text around the first found word in one line.' }),
      })
      .optional()
      .meta({ description: 'Place of the words of `search`. Missing without `search`.' }),
  })
  .meta({ id: 'ListedConversation' });

export const conversationList = z
  .strictObject({
    conversations: z.array(listedConversation).meta({ description: 'The most recently active conversation first.' }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'Send it as `cursor` to get the next page; null on the last page.' }),
    request_id: z.string(),
  })
  .meta({ id: 'ConversationList' });
export type ConversationList = z.infer<typeof conversationList>;

/** Messages that the user has added while the model wrote an answer. */
export const addedMessages = z
  .array(z.strictObject({ at: z.int().nonnegative(), content: modelText }))
  .max(100, 'must be at most 100 messages')
  .meta({
    description:
      'Messages that reached the model while it wrote this answer; `at` is the number of UTF-16 units of `content` before each.',
  });

const spokenMessage = z.strictObject({
  role: z.enum(['user', 'assistant']),
  content: z.string(),
  images: z.array(z.strictObject({ media_type: z.enum(imageTypes), data: z.string() })).optional(),
  files: z
    .array(z.strictObject({ name: z.string(), media_type: z.enum(documentTypes), data: z.string() }))
    .optional()
    .meta({ description: 'The documents, in base64.' }),
  model: z
    .string()
    .optional()
    .meta({ description: 'The model that gave the answer. Missing if unknown, and for messages of the user.' }),
  usage: usageBody.optional(),
  interrupted: z
    .literal(true)
    .optional()
    .meta({ description: 'The client has ended the answer early: the message is what the model had said until then.' }),
  added_messages: addedMessages.optional(),
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

export const maxTitleLength = 200;
export const controlCharacter = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

export const titleRequest = z
  .strictObject({
    title: z
      .string('must be a string, or null')
      .trim()
      .min(1, 'must not be empty: send null to restore the automatic title')
      .refine((title) => [...title].length <= maxTitleLength, `must have at most ${maxTitleLength} characters`)
      .refine((title) => !controlCharacter.test(title), 'must be one line, without control characters')
      .nullable()
      .meta({
        description: `At most ${maxTitleLength} characters, without leading and trailing spaces. Null restores the automatic title.`,
      }),
  })
  .meta({ id: 'TitleRequest' });

export const forkRequest = z
  .strictObject({
    from: z
      .int('must be a whole number')
      .min(2, 'must be at least 2')
      .multipleOf(2, 'must be even, because only whole turns are copied')
      .optional()
      .meta({
        description: 'Number of messages to copy; even, because a turn has two. Default: all.',
      }),
  })
  .meta({ id: 'ForkRequest' });

const maxPage = 100;
export const usualPage = 50;

export const limitQuery = z
  .string()
  .regex(/^([1-9]\d?|100)$/, `must be a whole number from 1 to ${maxPage}`)
  .meta({ description: `Maximum number: 1 to ${maxPage}. Default: ${usualPage}.` });
export const cursorQuery = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the next_cursor of an earlier page')
  .meta({ description: 'The `next_cursor` of the previous page.' });
/** Words of a search. Each is searched separately. */
const maxWords = 20;

export const searchQuery = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(maxTitleLength, `must have at most ${maxTitleLength} characters`)
  .refine((text) => text.split(/\s+/).length <= maxWords, `must have at most ${maxWords} words`)
  .meta({
    description: `Only conversations whose title and messages together contain all of these words (${maxWords} at most), in any order and regardless of case. A page ends after about a second, so it may have fewer than \`limit\` entries, or none, although more pages follow.`,
  });
export const versionOfQuery = z
  .string()
  .min(1, 'must not be empty')
  .max(maxTitleLength, `must have at most ${maxTitleLength} characters`)
  .meta({
    description:
      'Only this conversation and the conversations that share an origin with it. A page may have fewer than `limit` then, even none, although others follow.',
  });
export const formatQuery = z
  .enum(['json', 'markdown'], 'must be json or markdown')
  .meta({ description: 'Default: the type that `Accept` prefers, otherwise JSON.' });
export const downloadQuery = z
  .enum(['true', 'false'], 'must be true or false')
  .meta({ description: 'Whether a browser saves the response as a file.' });
