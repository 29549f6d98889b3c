import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  atCapacity,
  type ResponsesBehaviour,
  responds,
  responseStalls,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import { type Model, stubOfEach } from '../../support/doors/contract/house.js';
import { describeModelContract } from '../../support/doors/contract/suite.js';

const behaviours: Readonly<Record<Model, ResponsesBehaviour>> = {
  answers: responds('Good ', 'day'),
  fails: atCapacity,
  stalls: responseStalls,
  missing: responseStalls,
};

beforeAll(installCodex, 600_000);

const stub = stubOfEach(async (model) => Object.assign(await startResponsesApi(), { behave: () => behaviours[model] }));

describeModelContract('codex', async (model, { env, ...options }) => {
  const absent = model === 'missing' ? { MODEL_API_CLI_COMMAND: '/nonexistent/codex' } : {};
  return startWithCodex(await stub(model), { env: { ...absent, ...env }, ...options });
});
