import { type SdkFace, sdkLab } from '../../support/clients/sdk-lab.js';
import { describeAnswers } from './answers.js';
import { describeClaude } from './claude.js';
import { describeFailures } from './failures.js';
import { describeLoops } from './loops.js';
import { openAiClass } from './openai-classes.js';
import { describeRetries } from './retries.js';

const chat: SdkFace = {
  name: 'chat',
  dialect: 'openai',
  path: '/v1/chat/completions',
  endings: { whole: 'stop', tool: 'tool_calls' },
  structured: ['parse', 'jsonSchema', 'functionCalling'],
  objects: ['jsonMode'],
  has: [],
  classOf: (status, code) => (code === 'context_length_exceeded' ? 'ContextOverflowError' : openAiClass(status)),
  mindsAdvice: false,
};

const responses: SdkFace = {
  ...chat,
  name: 'responses',
  path: '/v1/responses',
  endings: { whole: 'completed', tool: 'completed' },
};

const lab = sdkLab('langchain');

describe('ChatOpenAI of @langchain/openai', () => {
  describeAnswers(lab, chat);
  describeClaude(lab, chat);
  describeFailures(lab, chat);
  describeRetries(lab, chat);
  describeLoops(lab, chat.name);
});

describe('ChatOpenAI of @langchain/openai with its Responses API', () => {
  describeAnswers(lab, responses);
  describeClaude(lab, responses);
  describeFailures(lab, responses);
  describeRetries(lab, responses);
  describeLoops(lab, responses.name);
});
