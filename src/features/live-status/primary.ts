import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { oneAtATime } from '../../shared/async.js';
import { delay } from '../../shared/clock.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls } from './shared.js';
import { StatusFeed } from './status-feed.js';

/** Pause between two collections of the figures of the workers. */
const betweenCountsMs = 100;

/** Creates the part that composes the status for the workers. */
export const createLiveStatus: CreatePrimaryPart = (core) => ({ handlers: statusHandlers(core) });

type StatusParts = Pick<PrimaryCore, 'host' | 'statusSections' | 'scrape'>;

function statusHandlers({ host, statusSections, scrape }: StatusParts): Handlers<typeof calls> {
  const feeds: Partial<Record<'named' | 'nameless', StatusFeed>> = {};
  const feedOf = (withNames: boolean) => {
    const name = withNames ? 'named' : 'nameless';
    feeds[name] ??= new StatusFeed(statusSections(withNames), host.clock);
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
