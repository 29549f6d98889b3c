import { z } from 'zod';
import { conversationBody, deletedBody } from '../../shared/api/chat.js';
import {
  conversationList,
  conversationMessages,
  cursorQuery,
  downloadQuery,
  forkRequest,
  formatQuery,
  limitQuery,
  searchQuery,
  titleRequest,
  versionOfQuery,
} from '../../shared/api/conversations.js';
import { keptErrors, readingErrors } from '../../shared/api/endpoints.js';
import { clientText } from '../../shared/client.js';
import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { flag } from '../../shared/config/values.js';
import { conversationPage, titledConversation } from '../../shared/conversation.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import type { Peer } from '../../shared/ipc/peer.js';
import { transcriptItem, transcriptOrder, type WorkerCalls } from '../../shared/ipc/protocol.js';
import { importRequest } from './import.js';
import { turnToImport } from './imported-turn.js';

/** What both processes know of conversations that clients read back. */

export const variables = {
  MODEL_API_READ_BACK: {
    ...{ schema: flag, fallback: 'true', secrecy: 'none', setting: 'readBack' },
    meaning: '`false`: nobody can list, read, name, fork or import conversations over HTTP',
  },
} as const satisfies FeatureVariables;

const nothing = z.object({});
/** Id of a conversation, and the client that requests it. */
const ownedKey = z.object({ id: z.string(), client: clientText });

export const calls = {
  /** Returns whether clients may read conversations. */
  mayReadBack: { request: nothing, answer: z.object({ readBack: z.boolean() }) },
  conversation: { request: ownedKey, answer: titledConversation },
  /** `title`: null restores the first words of the conversation. */
  renameConversation: { request: ownedKey.extend({ title: z.string().nullable() }), answer: titledConversation },
  deleteConversation: { request: ownedKey, answer: nothing },
  /**
   * `before`: `next` of the previous page. `search`: words in titles and messages, case-insensitive; null for all. `versionOf`: a
   * conversation whose versions are wanted; null for all.
   */
  conversations: {
    request: z.object({
      client: clientText,
      before: z.int().nullable(),
      limit: z.int(),
      search: z.string().nullable(),
      versionOf: z.string().nullable(),
    }),
    item: conversationPage,
  },
  /** Reads the next part. The reader has its position; the primary stores none. */
  transcript: { request: transcriptOrder, answer: transcriptItem },
  /** `messageCount`: number of messages to copy; null for all. */
  forkConversation: {
    request: ownedKey.extend({ messageCount: z.int().nullable() }),
    answer: titledConversation,
  },
  importTurn: { request: turnToImport, answer: titledConversation },
};

/** Makes the calls about conversations. */
export type ConversationCalls = Pick<Peer<typeof calls, WorkerCalls>, 'call' | 'stream'>;

const conversationPath = {
  route: '/chat/{conversation_id}',
  params: { conversation_id: 'Id of the conversation.' },
  errors: [...keptErrors, 'not_found'],
} as const;

export const endpoints = [
  {
    ...{ method: 'GET', route: '/chat', errors: keptErrors, id: 'listConversations' },
    summary: 'List your conversations',
    description:
      'The conversations of the caller. A conversation with a new turn moves to the top while you read the pages.',
    query: {
      limit: limitQuery.optional(),
      cursor: cursorQuery.optional(),
      search: searchQuery.optional(),
      version_of: versionOfQuery.optional(),
    },
    ...{ answer: conversationList, answerText: 'A page.' },
  },
  {
    ...{ method: 'POST', route: '/chat/import', success: 201, id: 'importConversation' },
    errors: [...readingErrors, 'shutting_down', 'store_unavailable'],
    summary: 'Import a conversation',
    description:
      'Makes a new conversation from messages as `GET /chat/{conversation_id}/messages` returns them. No model runs. If a turn cannot be stored, the whole import is undone.',
    body: {
      schema: importRequest,
      example: {
        messages: [
          { role: 'user', content: 'Hello, my name is Ada' },
          { role: 'assistant', content: 'Hello, Ada.', model: 'eliza' },
        ],
      },
    },
    ...{ answer: conversationBody, answerText: 'The new conversation.' },
  },
  {
    ...{ ...conversationPath, method: 'GET', id: 'getConversation' },
    summary: 'Get a conversation',
    description: 'The response has no messages.',
    ...{ answer: conversationBody, answerText: 'Everything about it, except its messages.' },
  },
  {
    ...{ ...conversationPath, method: 'PATCH', id: 'renameConversation' },
    errors: [...readingErrors, 'not_found', 'store_unavailable'],
    summary: 'Rename a conversation',
    description: 'This does not count as activity: the place in the list and the time of expiry stay the same.',
    body: { schema: titleRequest, example: { title: 'Names' } },
    ...{ answer: conversationBody, answerText: 'The conversation with its title.' },
  },
  {
    ...{ ...conversationPath, method: 'DELETE', id: 'deleteConversation' },
    summary: 'Delete a conversation',
    description: 'A running turn still receives its answer.',
    ...{ answer: deletedBody, answerText: 'It is deleted.' },
  },
  {
    ...{ ...conversationPath, method: 'GET', route: '/chat/{conversation_id}/messages', id: 'listMessages' },
    summary: 'Get the messages of a conversation',
    description:
      'The messages of all ended turns. If the conversation is removed while a long answer is sent, the answer is cut off. Markdown quotes each message under its role; it names images with their size and leaves their content out, and shows control characters as U+FFFD.',
    query: { format: formatQuery.optional(), download: downloadQuery.optional() },
    ...{ answer: conversationMessages, answerText: 'The messages.', alsoAs: 'text/markdown' },
  },
  {
    ...{
      ...conversationPath,
      method: 'POST',
      route: '/chat/{conversation_id}/fork',
      success: 201,
      id: 'forkConversation',
    },
    errors: [...readingErrors, 'not_found', 'store_unavailable'],
    summary: 'Start a conversation as a copy of another one',
    description:
      'Both conversations can then continue. No model runs, so the request works during a drain. If there are too many conversations, an idle one is removed.',
    body: { schema: forkRequest, example: { from: 2 } },
    ...{ answer: conversationBody, answerText: 'The new conversation.' },
  },
] as const satisfies readonly FeatureEndpoint[];
