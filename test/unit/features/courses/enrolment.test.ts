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
      membersOf: (course) => {
        reads++;
        return (['made old', 'made older'] as const).map((client) => ({ course, name: 'bio101-u7', client }));
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
    usage: {} as never,
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

it('The members of 100 courses with 5,000 people are found in one pass over the keys', async () => {
  const lines = Array.from({ length: 100 }, (_, index) => `@c${index} expires=2999-01-01 each=tokens:20/week`);
  const { groupLines } = readKeysFile(lines.join('\n'), keyOptions);
  const settings = { apiKeys: [], namedKeys: [], groupLines, personLines: [], needsKey: true };
  const all = Array.from({ length: 5000 }, (_, index): MadeKey => {
    const [group, name] = [`c${index % 100}`, `c${index % 100}-u${index}`];
    const identity = {
      name,
      client: `made ${name}~1` as const,
      digest: String(index),
      owner: `@${group}` as const,
      madeAt: 0,
    };
    return { ...plainOptions, ...identity, groups: [], group, featureOptions: { tokens: '10/week' } };
  });
  let reads = 0;
  const courses = new Courses({
    clients: new Clients({ ...settings, rateMaxRequests: 0, rateWindowMs: 1000 }, new FakeClock()),
    keyOptions,
    known: { membersOf: () => [] },
    keys: {
      get all() {
        reads += 1;
        return all;
      },
      changeOptions: () => plainOptions,
      update: () => Promise.reject(new Error('not called')),
    },
    now: () => 0,
    usage: { report: async () => [] } as never,
  });
  expect(courses.present).toHaveLength(5000);
  expect(reads).toBe(1);
  const listed = await courses.list({ client: 'key root', isAdmin: true, requestId: 'r' });
  expect(listed.map(({ members }) => members)).toEqual(lines.map(() => 50));
});
