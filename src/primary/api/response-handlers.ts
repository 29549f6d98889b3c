import { inLines, withResolvers } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import { storingIsOff } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { StoredResponses } from '../responses/stored-responses.js';

/** Parts that answer the calls about responses. */
export interface ResponseServices {
  readonly features: Pick<FeatureHooks, 'mayStore'>;
  readonly responses: Pick<StoredResponses, 'put' | 'read' | 'head' | 'input' | 'remove'>;
  noteActivity(): void;
  yieldInOrder(): Promise<void>;
}

/** Returns the handlers of the calls about responses. */
export function responseHandlers({ features, responses, noteActivity, yieldInOrder }: ResponseServices) {
  const inputOf = inLines(); // the primary holds the input of one response for each client, however many are read
  return {
    storeResponse: async ({ client, response }) => {
      noteActivity();
      if (!features.mayStore(client)) throw storingIsOff('responses');
      await responses.put({ client, ...response });
    },
    responsePiece: async ({ from, ...key }) => {
      await yieldInOrder();
      return responses.read(key, from);
    },
    responseInput: async function* ({ isReversed, from, ...key }, signal) {
      const [begun, ended] = [withResolvers(), withResolvers()];
      void inputOf(holderOf(key.client), async () => {
        begun.resolve();
        await ended.promise;
      });
      await begun.promise;
      try {
        signal.throwIfAborted();
        await yieldInOrder();
        const input = (await responses.input(key)).map((message, index) => ({ index, message }));
        yield* isReversed ? input.slice(0, (from ?? input.length) + 1).toReversed() : input.slice(from ?? 0);
      } finally {
        ended.resolve();
      }
    },
    continuedText: async (key) => {
      await yieldInOrder();
      return responses.head(key);
    },
    deleteResponse: (key) => responses.remove(key),
  } satisfies Partial<Handlers<PrimaryCalls>>;
}
