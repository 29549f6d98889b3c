import { endJobsWithoutAccess } from '../../../../src/primary/api/ended-access.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

it('The jobs and idle processes of clients without access end, and those of others go on', () => {
  const ended: string[] = [];
  const clients = ['key ada', 'key bob'];
  const end = (what: string) => (isAmong: (client: string) => boolean) =>
    void ended.push(...clients.filter(isAmong).map((client) => `${what} of ${client}`));
  const callers = clients.map((client) => ({
    request: jobRequest({ client }),
    cut: () => void ended.push(`job of ${client}`),
  }));
  const pool = { endSessionsOf: end('processes') };
  const parts = {
    clients: { hasAccess: (client: string) => client === 'key bob' },
    runner: { callers },
    background: { cancelOf: end('background jobs') },
    accounts: { all: [{ pool }] },
  };
  endJobsWithoutAccess(parts, new FakeClock());
  expect(ended).toEqual(['job of key ada', 'background jobs of key ada', 'processes of key ada']);
});
