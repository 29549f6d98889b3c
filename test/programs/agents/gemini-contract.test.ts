import {
  type GeminiApi,
  type GeminiBehaviour,
  geminiRefusals,
  geminiSays,
  geminiStalls,
  startGeminiApi,
} from '../../support/agents/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/agents/gemini-service.js';
import type { Model } from '../../support/doors/contract/house.js';
import { describeModelContract } from '../../support/doors/contract/suite.js';

const behaviours: Readonly<Record<Model, GeminiBehaviour>> = {
  answers: geminiSays('Good ', 'day'),
  fails: geminiRefusals.overloaded,
  stalls: geminiStalls,
  missing: geminiStalls,
};

let api: GeminiApi;

beforeAll(async () => {
  await installGemini();
  api = await startGeminiApi();
}, 600_000);
afterAll(() => api.close());

// The services can share the stub, because only one runs at a time.
describeModelContract('gemini', (model, { env, ...options }) => {
  api.behave = () => behaviours[model];
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/gemini' } : {};
  return startWithGemini(api, { env: { ...absent, ...env }, ...options });
});
