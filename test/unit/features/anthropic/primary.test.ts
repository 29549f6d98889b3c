import { createAnthropic } from '../../../../src/features/anthropic/primary.js';
import type { calls } from '../../../../src/features/anthropic/shared.js';
import { LearnedSizes } from '../../../../src/primary/cli/model-sizes.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { Handlers } from '../../../../src/shared/ipc/peer.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

it('The tokens of a prompt are counted as those of its model, which the usage of answers shows', async () => {
  const route = { cli: { name: 'claude', program: { extras: null } }, adapterModel: 'opus' };
  const core = {
    host: { clock: new FakeClock() },
    tokens: { countTokens: async (texts: readonly string[]) => texts.join('').length },
    sizes: new LearnedSizes(null, new LogBook()),
    catalog: { resolveName: async (name: string) => `${name}-1` },
    router: { route: ({ model }: { readonly model: string | null }) => (model === 'opus-1' ? route : null) },
  };
  const { handlers, job } = createAnthropic(core as unknown as PrimaryCore);
  const { countTokens } = handlers as Handlers<typeof calls>;
  const count = async () => (await countTokens({ texts: ['a'.repeat(1000)], client: 'key ada', model: 'opus' })).tokens;
  expect(await count()).toBe(1000);
  job?.inputCounted?.(route as never, jobRequest({ text: 'a'.repeat(10_000) }), 12_000);
  await new Promise(setImmediate);
  expect(await count()).toBe(1200);
});
