import { SubClientsHouse } from '../../support/clients/sub-clients.js';
import { startRedis } from '../../support/stores/redis-server.js';

describe('The sub-clients of one key, with a store that hosts share', () => {
  it('share its rate limit on all hosts', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url };
    await using north = await SubClientsHouse.start(',rate=3/600', env);
    await using south = await SubClientsHouse.start(',rate=3/600', env);
    for (const house of [north, south]) await house.open();
    const answers = [];
    for (const [house, user] of [
      [north, 'ada'],
      [south, 'bob'],
      [north, 'eve'],
      [south, 'joe'],
      [north, 'zoe'],
    ] as const) {
      answers.push((await house.ask('app', user, 'hello')).status);
    }
    expect(answers).toEqual([200, 200, 200, 429, 429]);
  });

  it('share its background jobs, and take turns', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_MAX_JOBS: '16', MODEL_API_STORE: redis.url };
    await using house = await SubClientsHouse.start('', env);
    const { started } = await house.backgroundCrowd();
    // The order is fixed on arrival: a later job may wait for a second job of ada's.
    expect(started.slice(0, 8)).toEqual(expect.arrayContaining(['bob', 'eve', 'joe']));
    // A job that has ended frees its place.
    await house.service.log(
      'background_job_ended',
      () => house.service.logs.filter(({ event }) => event === 'background_job_ended').length === 12,
    );
    expect(await house.background('ada', 'again')).toBe(202);
  });
});
