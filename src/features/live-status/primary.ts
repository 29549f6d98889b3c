import type { PrimaryCore } from '../../primary/features/feature.js';
import { oneAtATime } from '../../shared/async.js';
import { delay } from '../../shared/clock.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { LastHour } from './last-hour.js';
import { type SectionSources, sectionsOf } from './sections.js';
import type { calls } from './shared.js';
import { StatusFeed } from './status-feed.js';

/** Pause between two collections of the figures of the workers. */
const betweenCountsMs = 100;

/** Creates the part that counts jobs and requests over time, and composes the status for the workers. */
export const createLiveStatus = usingStore((core) => {
  const lastHour = new LastHour(core.host.clock);
  return {
    handlers: statusHandlers({ ...core, lastHour }),
    job: { jobEnded: (_request, end) => lastHour.jobEnded(end) },
    countRefusal: () => lastHour.countRefusal(),
    figuresReported: (families) => lastHour.countRequests(families),
  };
});

type StatusParts = SectionSources & Pick<PrimaryCore, 'scrape'> & { readonly host: Pick<PrimaryCore['host'], 'heap'> };

function statusHandlers(parts: StatusParts): Handlers<typeof calls> {
  const { host, scrape } = parts;
  const feeds: Partial<Record<'named' | 'nameless', StatusFeed>> = {};
  const feedOf = (withNames: boolean) => {
    const name = withNames ? 'named' : 'nameless';
    feeds[name] ??= new StatusFeed(sectionsOf(parts, withNames), host.clock);
    return feeds[name];
  };
  const countRequests = oneAtATime(
    () => scrape.fetchFigures(),
    () => delay(host.clock, betweenCountsMs),
  );
  return {
    status: async ({ withNames }) => {
      await countRequests();
      host.heap.touch();
      return { text: feedOf(withNames).text };
    },
    statusFeed: ({ withNames }, signal) => feedOf(withNames).watch(signal),
  };
}
