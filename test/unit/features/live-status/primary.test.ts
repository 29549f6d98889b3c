import { createLiveStatus } from '../../../../src/features/live-status/primary.js';
import type { calls } from '../../../../src/features/live-status/shared.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { Handlers } from '../../../../src/shared/ipc/peer.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

/** Creates the handlers of a service whose workers report seven requests when they are asked. */
function createHandlers() {
  const totals = { requests: 0 };
  const core = {
    host: { clock: new FakeClock(), heap: { touch: () => {} } },
    scrape: {
      fetchFigures: async () => {
        totals.requests = 7;
      },
    },
    statusSections: (withNames: boolean) => ({
      slots: () => (withNames ? 'alice' : null),
      totals: () => totals.requests,
    }),
  };
  return createLiveStatus(core as unknown as PrimaryCore).handlers as Handlers<typeof calls>;
}

describe('The live status', () => {
  it.each([
    [true, '{"slots":"alice","totals":7}'],
    [false, '{"slots":null,"totals":7}'],
  ])('is sent once, with what the workers have answered up to now (with names: %p)', async (withNames, text) => {
    expect(await createHandlers().status({ withNames })).toEqual({ text });
  });

  it.each([
    [true, '"alice"'],
    [false, 'null'],
  ])('is sent whenever it changes (with names: %p)', async (withNames, slots) => {
    const { signal } = new AbortController();
    const changes = createHandlers().statusFeed({ withNames }, signal) as AsyncGenerator<object>;
    expect((await changes.next()).value).toEqual({ slots, totals: '0' });
    await changes.return(undefined);
  });
});
