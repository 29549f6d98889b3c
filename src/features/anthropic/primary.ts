import type { PrimaryCore, PrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls } from './shared.js';
import { TokenFactors } from './token-factors.js';

/** Creates the part that counts the tokens of prompts, as the model would. */
export function createAnthropic({ host, tokens, sizes, catalog, router }: PrimaryCore): PrimaryPart {
  const factors = new TokenFactors({ tokens, sizes, clock: host.clock });
  const handlers: Handlers<typeof calls> = {
    countTokens: async ({ texts, client, model }) => {
      const resolved = model === null ? null : await catalog.resolveName(model);
      const factor = factors.factorOf(router.route({ model: resolved, client }));
      return { tokens: Math.round((await tokens.countTokens(texts, client)) * factor) };
    },
  };
  return { handlers, job: { inputCounted: (...count) => void factors.observeTokens(...count) } };
}
