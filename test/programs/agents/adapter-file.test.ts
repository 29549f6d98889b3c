import { exampleAgentIn, type StartExampleAgent } from '../../support/agents/adapter-files.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import type { Model } from '../../support/doors/contract/house.js';
import { describeModelContract } from '../../support/doors/contract/suite.js';
import { twoWorkers } from '../../support/service/service.js';

const moods: Readonly<Record<Model, string>> = {
  answers: '',
  fails: '--mood=busy',
  stalls: '--mood=silent',
  missing: '',
};

let folder: TemporaryFolder;
let startJay: StartExampleAgent;

beforeAll(async () => {
  folder = await temporaryFolder();
  startJay = await exampleAgentIn(folder.path);
});
afterAll(() => folder[Symbol.asyncDispose]());

describeModelContract('an adapter in a file', (model, { env, ...options }) => {
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/jay' } : {};
  return startJay(moods[model], { env: { ...twoWorkers, ...absent, ...env }, ...options });
});
