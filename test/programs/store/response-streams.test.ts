import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { untilEnded, untilStatus } from '../../support/clients/background.js';
import { orderedProgram } from '../../support/clients/sdk-lab.js';
import { type Service, startService } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

/** Starts a background response whose model writes these words with a pause before each. */
async function begin(service: Service, words: number, pauseMs: number): Promise<string> {
  const body = { model: 'default', input: `drip ${words} ${pauseMs}`, background: true };
  return String((await service.post('/v1/responses', body)).body.job_id);
}

async function eventsOf(service: Service, id: string, query = ''): Promise<string[]> {
  const { text } = await service.get(`/v1/responses/resp_${id}?stream=true${query}`);
  return text.split('\n\n').filter((block) => block.startsWith('event:'));
}

describe('The stream of a background response', () => {
  it('has the same events on two hosts, while the job runs and afterwards', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url, ...orderedProgram };
    await using north = await startService({ env });
    await using south = await startService({ env });
    const id = await begin(north, 8, 200);
    const [one = [], other = []] = await Promise.all([north, south].map((host) => eventsOf(host, id)));
    expect(other).toEqual(one);
    expect(one.length).toBeGreaterThan(10);
    expect(await eventsOf(south, id)).toEqual(one);
    expect(await eventsOf(south, id, '&starting_after=6')).toEqual(one.slice(7));
  });

  it('survives a restart after its end; before, it ends with an error for any reader', async () => {
    await using folder = await temporaryFolder();
    const env = { MODEL_API_STORE: `sqlite:${join(folder.path, 'store.db')}`, ...orderedProgram };
    const first = await startService({ env });
    const id = await begin(first, 8, 10);
    await untilEnded(first, id);
    const events = await eventsOf(first, id);
    const lost = await begin(first, 1000, 1000);
    await untilStatus(first, lost, 'running');
    first.process.kill('SIGKILL');
    await first.exited;
    await using second = await startService({ env });
    expect(await eventsOf(second, id)).toEqual(events);
    expect(await eventsOf(second, id, '&starting_after=6')).toEqual(events.slice(7));
    const end = await eventsOf(second, lost, '&starting_after=70');
    expect(end.map((event) => /^event: ([\w.]+).*"sequence_number":(\d+)/s.exec(event)?.slice(1))).toEqual([
      ['error', '71'],
      ['response.failed', '72'],
    ]);
    expect(end[0]).toContain('the service died while the job ran');
  });
});
