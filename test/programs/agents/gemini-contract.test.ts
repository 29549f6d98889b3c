import {
  type GeminiBehaviour,
  geminiRefusals,
  geminiSays,
  geminiStalls,
  startGeminiApi,
} from '../../support/agents/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/agents/gemini-service.js';
import { type Model, stubOfEach } from '../../support/doors/contract/house.js';
import { describeModelContract } from '../../support/doors/contract/suite.js';

const behaviours: Readonly<Record<Model, GeminiBehaviour>> = {
  answers: geminiSays('Good ', 'day'),
  fails: geminiRefusals.overloaded,
  stalls: geminiStalls,
  missing: geminiStalls,
};

beforeAll(installGemini, 600_000);

const stub = stubOfEach(async (model) => Object.assign(await startGeminiApi(), { behave: () => behaviours[model] }));

describeModelContract('gemini', async (model, { env, ...options }) => {
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/gemini' } : {};
  return startWithGemini(await stub(model), { env: { ...absent, ...env }, ...options });
});
