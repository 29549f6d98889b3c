import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import type { Primary } from '../../worker/http/exchange.js';

export const calls = {
  /** Estimates the total number of tokens of all texts. */
  countTokens: {
    request: z.object({ texts: z.array(z.string()).readonly(), client: clientText, model: z.string().nullable() }),
    answer: z.object({ tokens: z.int() }),
  },
};

type CountCalls = Pick<Peer<typeof calls, WorkerCalls>, 'call'>;

/** Returns the calls of this feature. The channel knows the calls of all features, but its type does not. */
export function countCalls(primary: Primary): CountCalls {
  return primary as Primary & CountCalls;
}
