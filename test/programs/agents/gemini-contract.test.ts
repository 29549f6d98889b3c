import type { Model } from '../../support/contract/house.js';
import { describeModelContract } from '../../support/contract/suite.js';
import {
  type GeminiApi,
  type GeminiBehaviour,
  geminiRefusals,
  geminiSays,
  geminiStalls,
  startGeminiApi,
} from '../../support/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/gemini-service.js';

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
