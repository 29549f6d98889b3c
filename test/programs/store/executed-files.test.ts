import { join } from 'node:path';
import { askInBackground } from '../../support/background.js';
import { countedIn, Executions } from '../../support/executed-files.js';
import { temporaryFolder } from '../../support/folder.js';
import { startRedis } from '../../support/redis-server.js';
import { startService } from '../../support/service.js';

/**
 * Maximum number of files of src that a background job may execute in addition to the files of a POST /ask. Never raise
 * this limit. The first measurement was 18.
 */
const most = 25;

it(`A warm background job in Redis executes at most ${most} files more than POST /ask`, async () => {
  await using folder = await temporaryFolder();
  await using redis = await startRedis();
  const counted = join(folder.path, 'executed');
  const env = { ...countedIn(counted), MODEL_API_STANDBY: '1', MODEL_API_STORE: redis.url };
  await using service = await startService({ env });
  const executions = new Executions(counted, [service.pid, ...(await service.workers())]);
  const ask = () => service.post('/ask', { prompt: 'hello' });
  const runJob = async () => {
    const id = await askInBackground(service, 'hello');
    await service.log('background_job_ended', (record) => record.job_id === id);
  };
  /** Returns the files that each of four rounds executed, of the project and not of bundled packages. */
  const roundsOf = async (action: () => Promise<unknown>) => {
    await action();
    const rounds: string[][] = [];
    for (let round = 0; round < 4; round++) rounds.push(await executions.during(action));
    return rounds.map((files) => files.filter((file) => !file.startsWith('node_modules/')));
  };
  // Timers fire in some rounds, on a slow machine in all. The files that run for them do not belong to the job.
  const asked = new Set((await roundsOf(ask)).flat());
  const [first = [], ...others] = await roundsOf(runJob);
  const ofJob = first.filter((file) => others.every((files) => files.includes(file)));
  expect(ofJob).toEqual(expect.arrayContaining(['primary/hosts/job-queue.js', 'primary/hosts/job-texts.js']));
  expect(ofJob.filter((file) => !asked.has(file)).length).toBeLessThanOrEqual(most);
});
