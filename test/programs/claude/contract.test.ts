import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { type Behaviour, refusals, says, stalls, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { type Model, type Start, stubOfEach } from '../../support/doors/contract/house.js';
import { describeModelContract } from '../../support/doors/contract/suite.js';

const behaviours: Readonly<Record<Model, Behaviour>> = {
  answers: says('Good ', 'day'),
  fails: refusals.overloaded,
  stalls,
  missing: stalls,
};

beforeAll(installClaude, 600_000);

const stub = stubOfEach(async (model) => Object.assign(await startMessagesApi(), { behave: () => behaviours[model] }));

const start: Start = async (model, { env, ...options }) => {
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/claude' } : {};
  return startWithClaude(await stub(model), { env: { ...absent, ...env }, ...options });
};

describeModelContract('claude', start, true);
