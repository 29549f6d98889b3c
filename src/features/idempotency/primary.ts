import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Config } from '../../shared/config/config.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { answerTtlMs } from '../stores/contract/answers.js';
import { usingStore } from '../stores/contract/full-store.js';
import { Claims } from './claims.js';
import type { calls } from './shared.js';

/** Creates the part that gives repeated requests their first answer. */
export const createIdempotency = usingStore(({ host, store, runner, config, yieldInOrder, mayStore }) => {
  const claims = new Claims(store.answers, host.clock, () => runner.busySeconds, mayStore);
  const handlers: Handlers<typeof calls> = {
    claim: (order, signal) => claims.hold(order, signal),
    recordedPiece: async (order) => {
      await yieldInOrder();
      return { text: await claims.readAnswer(order) };
    },
    record: async ({ claim, answer }) => ({ isRecorded: await claims.record(claim, answer) }),
  };
  return { handlers, storedKinds: [recordedAnswers(config.store)] };
});

function recordedAnswers({ dataPlace: place }: Config['store']): StoredKind {
  return {
    ...{ kind: 'recorded answers', content: 'answers to requests with an Idempotency-Key', place },
    ...{ keptMs: answerTtlMs, until: '1 day, also after its conversation is deleted', readers: ['client', 'host'] },
    ...{ export: 'the same request again', deletion: null, variables: ['MODEL_API_STORE'] },
  };
}
