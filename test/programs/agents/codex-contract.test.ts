import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  atCapacity,
  type ResponsesApi,
  type ResponsesBehaviour,
  responds,
  responseStalls,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import type { Model } from '../../support/doors/contract/house.js';
import { describeModelContract } from '../../support/doors/contract/suite.js';

const behaviours: Readonly<Record<Model, ResponsesBehaviour>> = {
  answers: responds('Good ', 'day'),
  fails: atCapacity,
  stalls: responseStalls,
  missing: responseStalls,
};

let api: ResponsesApi;

beforeAll(async () => {
  await installCodex();
  api = await startResponsesApi();
}, 600_000);
afterAll(() => api.close());

// The services can share the stub, because only one runs at a time.
describeModelContract('codex', (model, { env, ...options }) => {
  api.behave = () => behaviours[model];
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/codex' } : {};
  return startWithCodex(api, { env: { ...absent, ...env }, ...options });
});
