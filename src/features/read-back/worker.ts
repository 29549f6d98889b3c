import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import {
  deleteConversation,
  getConversation,
  getConversations,
  getMessages,
  patchConversation,
  postFork,
  postImport,
  readBackGuard,
} from './routes.js';
import type { calls } from './shared.js';

export async function createPart({ primary, authority, guards, jobs }: WorkerCore<typeof calls>): Promise<WorkerPart> {
  const { readBack } = await primary.call('mayReadBack', {});
  const mayChat = authenticate(authority, 'chat');
  const mayRead = [mayChat, readBackGuard(readBack)];
  return {
    routes: [
      { route: '/chat', get: [...mayRead, getConversations(primary)] },
      { route: '/chat/import', post: [...mayRead, guards.needsService, guards.capped, postImport({ primary, jobs })] },
      {
        route: '/chat/{conversation_id}',
        get: [mayChat, getConversation(primary, readBack)],
        patch: [...mayRead, patchConversation(primary, jobs)],
        delete: [mayChat, deleteConversation(primary)],
      },
      { route: '/chat/{conversation_id}/messages', get: [...mayRead, getMessages(primary)] },
      { route: '/chat/{conversation_id}/fork', post: [...mayRead, guards.capped, postFork(primary, jobs)] },
    ],
  };
}
