import { Clients } from '../../../../src/primary/access/clients.js';
import { endJobsWithoutAccess } from '../../../../src/primary/api/ended-access.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

it('The jobs and idle processes of clients without access end, and those of others go on', () => {
  const ended: string[] = [];
  const clients = ['key ada', 'key bob'] as const;
  const end = (what: string) => (isAmong: (client: ClientText) => boolean) =>
    void ended.push(...clients.filter(isAmong).map((client) => `${what} of ${client}`));
  const callers = clients.map((client) => ({
    request: jobRequest({ client }),
    cut: () => void ended.push(`job of ${client}`),
  }));
  const background = clients.map((client) => ({
    request: jobRequest({ client }),
    background: { cancel: () => void ended.push(`background job of ${client}`) },
  }));
  const pool = { endSessionsOf: end('processes') };
  const parts = {
    clients: { hasAccess: (client: ClientText) => client === 'key bob' },
    openJobs: { callers },
    localJobs: { background: background },
    logins: { all: [{ pool }] },
  };
  endJobsWithoutAccess(parts, new FakeClock());
  expect(ended).toEqual(['job of key ada', 'background job of key ada', 'processes of key ada']);
});

it('The jobs and idle processes of a key end when it expires, as those of a revoked key do', async () => {
  const clock = new FakeClock();
  const expiresAt = clock.now() + 1000;
  const keyOf = (name: string, more: object) => ({ name, digest: digestOf(name), ...plainOptions, ...more });
  const made = { groups: [], client: 'made ci~1' as const, expiresAt };
  const clients = new Clients(
    {
      ...{ rateMaxRequests: 0, rateWindowMs: 1000, needsKey: true, groupLines: [], apiKeys: [] },
      namedKeys: [keyOf('ada', { expiresAt }), keyOf('bob', {})],
      personLines: [{ name: 'eve', ...plainOptions, expiresAt }],
    },
    clock,
  );
  clients.replaceAddedKeys([{ ...keyOf('ci', {}), ...made }]);
  const all = ['key ada', 'key ada/user', 'made ci~1', 'sso eve', 'key bob'] as const;
  const lists: Record<'jobs' | 'background' | 'processes', string[]> = { jobs: [], background: [], processes: [] };
  const endSessionsOf = (isAmong: (client: ClientText) => boolean) => void lists.processes.push(...all.filter(isAmong));
  const callers = all.map((client) => ({ request: jobRequest({ client }), cut: () => void lists.jobs.push(client) }));
  const logins = { all: [{ pool: { endSessionsOf } }] };
  const background = all.map((client) => ({
    request: jobRequest({ client }),
    background: { cancel: () => void lists.background.push(client) },
  }));
  const parts = { clients, openJobs: { callers }, localJobs: { background }, logins };
  endJobsWithoutAccess(parts, clock);
  expect(lists).toEqual({ jobs: [], background: [], processes: [] });
  await clock.advance(1000);
  endJobsWithoutAccess(parts, clock);
  const expired = all.slice(0, -1);
  expect(lists).toEqual({ jobs: expired, background: expired, processes: expired });
});
