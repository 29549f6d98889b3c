import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  type Behaviour,
  type MessagesApi,
  refusals,
  says,
  stalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import type { Model } from '../../support/doors/contract/house.js';
import { describeContract } from '../../support/doors/contract/suite.js';

const behaviours: Readonly<Record<Model, Behaviour>> = {
  answers: says('Good ', 'day'),
  fails: refusals.overloaded,
  stalls,
  missing: stalls,
};

let api: MessagesApi;

beforeAll(async () => {
  await installClaude();
  api = await startMessagesApi();
}, 600_000);
afterAll(() => api.close());

// The services can share the stub, because only one runs at a time.
describeContract('claude', (model, { env, ...options }) => {
  api.behave = () => behaviours[model];
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/claude' } : {};
  return startWithClaude(api, { env: { ...absent, ...env }, ...options });
});
