import { Courses } from '../../../../src/features/courses/courses.js';
import type { MadeKey } from '../../../../src/features/keys-api/records.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import { plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';

it('Many members are enrolled with their former clients, which are read once', async () => {
  const { groupLines } = readKeysFile('@bio101 expires=2999-01-01', keyOptions);
  const settings = { apiKeys: [], namedKeys: [], groupLines, personLines: [], needsKey: true };
  const clock = new FakeClock();
  const made: MadeKey[] = [];
  let reads = 0;
  const courses = new Courses({
    clients: new Clients({ ...settings, rateMaxRequests: 0, rateWindowMs: 1000 }, clock),
    keyOptions,
    known: {
      of: (course) => {
        reads++;
        return ['made old', 'made older'].map((client) => ({ course, name: 'bio101-u7', client }));
      },
    },
    keys: {
      all: [],
      changeOptions: () => plainOptions,
      update: async (_by, _act, change) => {
        const { keys, answer } = change([]);
        made.push(...keys);
        return answer;
      },
    },
    now: () => clock.now(),
    usageJournal: {} as never,
  });
  const logins = Array.from({ length: 500 }, (_, index) => `u${index}`);
  await courses.enrol({ client: 'key root', isAdmin: true, requestId: 'r' }, 'bio101', logins, {});
  expect(made).toHaveLength(500);
  expect(made.flatMap(({ name, former = [] }) => former.map((each) => [name, each]))).toEqual([
    ['bio101-u7', 'made old'],
    ['bio101-u7', 'made older'],
  ]);
  expect(reads).toBe(1);
});
