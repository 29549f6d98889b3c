import { join } from 'node:path';
import { countedIn, Executions } from '../support/executed-files.js';
import { temporaryFolder } from '../support/folder.js';
import { startService } from '../support/service.js';

/** How many files a request may execute: it goes down with each change, and never up. The target is 55. */
const most = 88;

it(`A warm POST /ask executes ${most} files at most`, async () => {
  await using folder = await temporaryFolder();
  const counted = join(folder.path, 'executed');
  await using service = await startService({ env: { ...countedIn(counted), MODEL_API_STANDBY: '1' } });
  const executions = new Executions(counted, [service.pid, ...(await service.workers())]);
  const ask = () => service.post('/ask', { prompt: 'hello' });
  await ask();
  const rounds: string[][] = [];
  for (let round = 0; round < 4; round++) rounds.push(await executions.during(ask));
  // A timer may strike during some of them.
  const files = rounds[0]?.filter((file) => rounds.every((each) => each.includes(file))) ?? [];
  expect(files).toEqual(expect.arrayContaining(['primary/jobs/job-runner.js', 'worker/api/ask.js']));
  expect(files.length).toBeLessThanOrEqual(most);
});
