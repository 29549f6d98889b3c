import { createLiveStatus } from '../../../../src/features/live-status/primary.js';
import type { calls } from '../../../../src/features/live-status/shared.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { noBill } from '../../../../src/primary/jobs/bill.js';
import type { StatusBody } from '../../../../src/shared/api/status.js';
import type { Handlers } from '../../../../src/shared/ipc/peer.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobDone, jobRequest } from '../../../support/jobs/job-records.js';

const waiting = [{ client: 'key alice', count: 1, oldestAt: 0, reason: 'slot' }];
const requests = { name: 'model_api_http_requests_total', type: 'counter', help: '', aggregator: 'sum' } as const;

/** Creates the part in a service whose workers report seven requests when they are asked. */
function createPart() {
  const status = { visible: () => [], workers: () => [], checks: () => [] };
  const circuits = { status: [{ state: 'closed', model: null, reason: null, since: null, until: null }] };
  const cli = { pool: { renewalFaults: [] }, health: { circuits, windows: { current: [] } } };
  const core = {
    host: { clock: new FakeClock(), heap: { touch: () => {} }, product: { version: '1' } },
    scrape: {
      fetchFigures: async () => part.figuresReported?.([{ ...requests, values: [{ labels: {}, value: 7 }] }]),
    },
    status: () => ({ ...status, visible: () => [cli] }),
    ...{ config: { needsKey: true, maxJobs: 0 }, store: { jobs: { shared: null } } },
    room: { limits: { maxActive: 1, maxWaiting: 1 }, waiting: 1, fullSince: null, waitingClients: waiting },
    ...{
      jobEntry: { recentlyRefused: 0 },
      openJobs: { running: [] },
      localJobs: { counts: { queued: 0, running: 0 } },
    },
    ...{ jobHooks: { reservedSlots: [] }, metrics: { jobs: { totals: { jobs: 0 } } } },
  };
  const part = createLiveStatus(core as unknown as PrimaryCore);
  return { part, handlers: part.handlers as Handlers<typeof calls> };
}

describe.each([
  [true, 'alice'],
  [false, null],
])('The live status (with names: %p)', (withNames, client) => {
  it('is sent once, with what the workers have answered up to now', async () => {
    const { text } = await createPart().handlers.status({ withNames });
    expect(JSON.parse(text)).toMatchObject({ queue: { clients: [{ client }] }, totals: { requests: 7 } });
  });

  it('is sent whenever it changes', async () => {
    const { signal } = new AbortController();
    const { handlers } = createPart();
    const changes = handlers.statusFeed({ withNames }, signal) as AsyncGenerator<Record<string, string>>;
    const { value } = await changes.next();
    expect(JSON.parse(value.queue)).toMatchObject({ clients: [{ client }] });
    expect(JSON.parse(value.totals)).toEqual({ requests: 0, jobs: 0 });
    await changes.return(undefined);
  });
});

it('The last hour counts jobs that have ended, and refused requests', async () => {
  const { part, handlers } = createPart();
  part.job?.jobEnded?.(jobRequest(), jobDone(), noBill);
  part.countRefusal?.('key alice');
  const { last_hour: minutes } = JSON.parse((await handlers.status({ withNames: true })).text) as StatusBody;
  expect(minutes).toMatchObject([{ jobs: 1, refused: 1, requests: 7 }]);
});
