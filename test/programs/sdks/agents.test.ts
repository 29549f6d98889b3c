import { startWithClaude } from '../../support/agents/claude-service.js';
import { startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { startSdkClient } from '../../support/clients/sdk-client.js';
import type { SdkLab } from '../../support/clients/sdk-lab.js';
import { describeLoops } from './loops.js';

const lab: { -readonly [Name in 'client' | 'claude' | 'api']?: SdkLab[Name] } = {};

beforeAll(async () => {
  lab.client = await startSdkClient('agents');
  lab.api = await startMessagesApi();
  lab.claude = await startWithClaude(lab.api, { env: { MODEL_API_LIVE_SESSIONS: '4' } });
}, 600_000);

afterAll(async () => {
  await lab.claude?.stop();
  await lab.api?.close();
  await lab.client?.[Symbol.asyncDispose]();
});

describe.each(['chat', 'responses'])('@openai/agents by %s', (face) => {
  describeLoops(lab as SdkLab, face);
});
