import { type SdkFace, sdkLab } from '../../support/clients/sdk-lab.js';
import { describeAnswers } from './answers.js';
import { describeClaude } from './claude.js';
import { describeFailures } from './failures.js';
import { describeLoops } from './loops.js';
import { openAiClass } from './openai-classes.js';
import { describeRetries } from './retries.js';
import { describeThoughts } from './thoughts.js';

const chat: SdkFace = {
  name: 'chat',
  dialect: 'openai',
  path: '/v1/chat/completions',
  endings: { whole: 'stop', tool: 'tool_calls' },
  structured: ['parse', 'parseStream'],
  objects: ['jsonObject'],
  has: ['models', 'helper', 'requestId'],
  classOf: openAiClass,
  mindsAdvice: true,
  takesHeaders: true,
};

const responses: SdkFace = {
  ...chat,
  name: 'responses',
  path: '/v1/responses',
  endings: { whole: 'completed', tool: 'completed' },
  objects: [],
  has: ['helper', 'requestId'],
};

const lab = sdkLab('openai');

it('The client runs under Node 24', () => {
  expect(lab.client.node).toMatch(/^v24\./);
});

describe('chat.completions of openai', () => {
  describeAnswers(lab, chat);
  describeClaude(lab, chat);
  describeFailures(lab, chat);
  describeRetries(lab, chat);
  describeThoughts(lab, chat);
  describeLoops(lab, chat.name);
});

describe('responses of openai', () => {
  describeAnswers(lab, responses);
  describeClaude(lab, responses);
  describeFailures(lab, responses);
  describeRetries(lab, responses);
  describeThoughts(lab, responses);
  describeLoops(lab, responses.name, ['steps', 'stepsStream', 'linkedSteps', 'linkedStepsStream']);
});
