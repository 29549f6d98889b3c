import { join } from 'node:path';
import { countedIn, Executions } from '../../support/executed-files.js';
import { temporaryFolder } from '../../support/folder.js';
import { type Service, script, startService } from '../../support/service.js';
import { StatelessClient } from '../../support/stateless-client.js';

/**
 * Maximum number of files that a request may execute. Lower it with each improvement; a new capability may add three.
 * The target is 55.
 */
const most = 96;
/** Maximum for a turn through an API whose conversation has a live process. The target is 60. */
const mostOfTurn = 96;

const standby = { MODEL_API_STANDBY: '1' };
const takesNote = {
  MODEL_API_LIVE_SESSIONS: '4',
  MODEL_API_CLI: 'demo',
  MODEL_API_CLI_COMMAND: script('takes-note.pl'),
};

/** Returns the files that each of four requests executes, after a first request of the same kind. */
async function executedBy(
  requestOf: (service: Service) => () => Promise<unknown>,
  env: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  await using folder = await temporaryFolder();
  const counted = join(folder.path, 'executed');
  await using service = await startService({ env: { ...countedIn(counted), ...env } });
  const executions = new Executions(counted, [service.pid, ...(await service.workers())]);
  const request = requestOf(service);
  await request();
  const rounds: string[][] = [];
  for (let round = 0; round < 4; round++) rounds.push(await executions.during(request));
  // A timer may fire during some of them.
  return rounds[0]?.filter((file) => rounds.every((each) => each.includes(file))) ?? [];
}

it(`A warm POST /ask executes at most ${most} files`, async () => {
  const files = await executedBy((service) => () => service.post('/ask', { prompt: 'hello' }), standby);
  expect(files).toEqual(expect.arrayContaining(['primary/jobs/job-runner.js', 'worker/api/ask.js']));
  expect(files.length).toBeLessThanOrEqual(most);
});

it(`A turn in a live process executes at most ${mostOfTurn} files`, async () => {
  const sessions: (string | null)[] = [];
  const files = await executedBy((service) => {
    const client = new StatelessClient(service, 'some-key');
    return async () => sessions.push((await client.say(`turn ${sessions.length + 1}`)).session);
  }, takesNote);
  expect(sessions).toEqual(['replay', 'live', 'live', 'live', 'live']);
  expect(files).toEqual(expect.arrayContaining(['primary/jobs/job-runner.js', 'worker/openai/chat.js']));
  expect(files.length).toBeLessThanOrEqual(mostOfTurn);
});
