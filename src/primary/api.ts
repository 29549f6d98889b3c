import type { HealthBody } from '../shared/api/health.js';
import type { VersionBody } from '../shared/api/version.js';
import { RelayError } from '../shared/errors.js';
import type { Handlers } from '../shared/ipc/message.js';
import type { DoorSettings, PrimaryCalls } from '../shared/ipc/protocol.js';
import type { JobEvent, JobRequest } from '../shared/job.js';
import type { Phase } from '../shared/phase.js';
import type { ConversationStore } from './conversation-store.js';

/** What the primary answers its workers with. */
export interface Services {
  phase(): Phase;
  doorSettings(): DoorSettings;
  run(request: JobRequest, caller: AbortSignal): AsyncIterable<JobEvent>;
  readonly conversations: Pick<ConversationStore, 'snapshot' | 'remove'>;
  health(): HealthBody;
  version(): VersionBody;
}

/** Every call of the protocol, for one worker; its heartbeat is the fleet's own business. */
export function apiHandlers(services: Services): Omit<Handlers<PrimaryCalls>, 'heartbeat'> {
  return {
    hello: () => once(() => services.doorSettings()),
    health: () => once(() => services.health()),
    version: () => once(() => services.version()),
    conversation: ({ id, owner }) => once(() => services.conversations.snapshot(id, owner)),
    deleteConversation: ({ id, owner }) =>
      once(() => {
        services.conversations.remove(id, owner);
        return {};
      }),
    run: (request, signal) => {
      // A worker may not have heard of the drain yet.
      if (services.phase() !== 'ready') throw shuttingDown();
      return services.run(request, signal);
    },
  };
}

async function* once<T>(make: () => T): AsyncGenerator<T> {
  yield make();
}

function shuttingDown(): RelayError {
  return new RelayError('shutting_down', 'the service is shutting down', { retryAfterSeconds: 5 });
}
