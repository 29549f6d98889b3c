import { until } from '../../support/basics/until.js';
import { type SubClientKey, SubClientsHouse } from '../../support/clients/sub-clients.js';
import { untilJobs } from '../../support/jobs/jobs.js';

describe('The sub-clients of one key', () => {
  it('share its rate limit, even with different names', async () => {
    await using house = await SubClientsHouse.start(',rate=3/600');
    await house.open();
    const answers = [];
    for (const user of ['ada', 'Bob', null, 'eve', 'Eve']) answers.push((await house.ask('app', user, 'hello')).status);
    expect(answers).toEqual([200, 200, 200, 429, 429]);
    expect((await house.ask('other', null, 'hello')).status).toBe(200);
  });

  it('share its slots', async () => {
    await using house = await SubClientsHouse.start(',concurrent=2', { MODEL_API_MAX_CONCURRENT: '4' });
    const answers = ['ada', 'Bob', 'eve'].map((user) => house.ask('app', user, user));
    await untilJobs(house.service, 2, 1);
    answers.push(house.ask('other', null, 'other'));
    await untilJobs(house.service, 3, 1);
    await house.open();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  it('share its queue places: none loses a job, and a free place goes to one who has none', async () => {
    await using house = await SubClientsHouse.start(',queue=4');
    const first = house.ask('other', null, 'first');
    await untilJobs(house.service, 1, 0);
    const leaver = new AbortController();
    const left = house.ask('app', 'ada', 'left', leaver.signal).catch(() => null);
    await untilJobs(house.service, 1, 1);
    const ada = [];
    for (let waiting = 2; waiting <= 4; waiting++)
      ada.push((await house.queued('app', 'ada', `ada ${waiting}`, waiting)).answer);
    const refused = await Promise.all(['ada', 'bob'].map((user) => house.ask('app', user, user)));
    expect(refused.map(({ status }) => status)).toEqual([429, 429]);
    leaver.abort();
    await untilJobs(house.service, 1, 3);
    const { status, text } = await house.ask('app', 'ada', 'ada 5');
    expect([status, text]).toEqual([429, expect.stringContaining('its share is 1 of 4 places of its key')]);
    const bob = await house.queued('app', 'bob', 'bob', 4);
    await house.open();
    const served = await Promise.all([first, ...ada, bob.answer]);
    expect(served.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200]);
    await left;
  });

  it('take turns among themselves, and as one client with other keys', async () => {
    await using house = await SubClientsHouse.start('');
    const answers = [house.ask('other', null, 'other 1')];
    await untilJobs(house.service, 1, 0);
    const asked: [SubClientKey, string | null, string][] = [
      ...['ada 1', 'ada 2', 'ada 3'].map((prompt): [SubClientKey, string, string] => ['app', 'ada', prompt]),
      ...['bob', 'Eve', 'joe'].map((user): [SubClientKey, string, string] => ['app', user, user]),
      ...['other 2', 'other 3', 'other 4'].map((prompt): [SubClientKey, null, string] => ['other', null, prompt]),
    ];
    for (const [index, [key, user, prompt]] of asked.entries())
      answers.push((await house.queued(key, user, prompt, index + 1)).answer);
    await house.open();
    await Promise.all(answers);
    const order = ['ada 1', 'other 2', 'bob', 'other 3', 'Eve', 'other 4', 'joe', 'ada 2', 'ada 3'];
    expect(await house.started(10)).toEqual(['other 1', ...order]);
  });

  it('count as one client for the share of the queue', async () => {
    await using house = await SubClientsHouse.start('', { MODEL_API_MAX_QUEUE: '8' });
    const first = house.ask('other', null, 'other');
    await untilJobs(house.service, 1, 0);
    const statuses: number[] = [];
    const users = Array.from({ length: 20 }, async (_, number) => {
      statuses.push((await house.ask('app', `user${number}`, 'hello')).status);
    });
    // Two wait: a quarter of the queue.
    await until(() => statuses.length === 18, 'those to be refused that are too many');
    expect(statuses).toEqual(Array(18).fill(429));
    await house.open();
    await Promise.all([first, ...users]);
    expect(statuses.slice(18)).toEqual([200, 200]);
  });
});

it('The background jobs of the sub-clients of one key share its quota, and take turns', async () => {
  await using house = await SubClientsHouse.start('', { MODEL_API_MAX_JOBS: '16' });
  const { started } = await house.backgroundCrowd();
  expect(started.slice(0, 5)).toEqual(['first', 'ada 1', 'bob', 'eve', 'joe']);
});
