import type { PrimaryCore } from '../../primary/features/feature.js';
import { inLines, withResolvers } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import { storingIsOff } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { type calls, metrics } from './shared.js';
import { responseLimits, StoredResponses } from './stored-responses.js';

/** Creates the part that stores responses, and answers the calls about them. */
export const createOpenAi = usingStore(({ store, config, host, ...core }) => {
  const responses = new StoredResponses(store.responses, responseLimits(config), host.clock);
  const { stored_responses: counted, stored_response_bytes: bytes } = metrics;
  return {
    job: { readEarlier: (request) => responses.readEarlier(request) },
    handlers: responseHandlers({ ...core, host, responses }),
    gauges: [
      { name: 'stored_responses', ...counted, read: () => store.responses.counts.count },
      { name: 'stored_response_bytes', ...bytes, read: () => store.responses.counts.bytes },
    ],
  };
});

type ResponseParts = Pick<PrimaryCore, 'host' | 'mayStore' | 'yieldInOrder'> & {
  readonly responses: StoredResponses;
};

/** Returns the handlers of the calls about responses. */
function responseHandlers({ host, responses, mayStore, yieldInOrder }: ResponseParts): Handlers<typeof calls> {
  const inputOf = inLines(); // the primary holds the input of one response for each client, however many are read
  return {
    storeResponse: async ({ client, response }) => {
      host.heap.touch();
      if (!mayStore(client)) throw storingIsOff('responses');
      await responses.putResponse({ client, ...response });
    },
    responsePiece: async ({ from, ...key }) => {
      await yieldInOrder();
      return responses.readBody(key, from);
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
      return responses.readHead(key);
    },
    deleteResponse: (key) => responses.removeResponse(key),
  };
}
