import { join } from 'node:path';
import { askInBackground } from '../../support/background.js';
import { countedIn, Executions } from '../../support/executed-files.js';
import { temporaryFolder } from '../../support/folder.js';
import { startRedis } from '../../support/redis-server.js';
import { startService } from '../../support/service.js';

/** How many files of src a background job may execute beside those of a POST /ask: it never goes up. They were 18. */
const most = 25;

it(`A warm background job in Redis executes ${most} files at most beside those of POST /ask`, async () => {
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
  /** A timer may strike during some of them. */
  const filesOf = async (action: () => Promise<unknown>) => {
    await action();
    const rounds: string[][] = [];
    for (let round = 0; round < 4; round++) rounds.push(await executions.during(action));
    const isOwn = (file: string) => !file.startsWith('node_modules/'); // packages that the build carries
    return rounds[0]?.filter((file) => isOwn(file) && rounds.every((each) => each.includes(file))) ?? [];
  };
  const asked = await filesOf(ask);
  const beside = (await filesOf(runJob)).filter((file) => !asked.includes(file));
  expect(beside).toEqual(expect.arrayContaining(['primary/hosts/job-queue.js', 'primary/hosts/job-texts.js']));
  expect(beside.length).toBeLessThanOrEqual(most);
});
