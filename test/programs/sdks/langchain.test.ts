import { sdkLab } from '../../support/clients/sdk-lab.js';
import { describeSmoke, type WrappedFace } from './smoke.js';

const chat: WrappedFace = {
  name: 'chat',
  endings: { whole: 'stop', tool: 'tool_calls' },
  structured: ['parse', 'jsonSchema', 'functionCalling'],
  objects: ['jsonMode'],
  refusal: 'AuthenticationError',
};

const lab = sdkLab('langchain', ['demo', 'command', 'claude', 'strict']);

describe('ChatOpenAI of @langchain/openai', () => {
  describeSmoke(lab, chat);
});

describe('ChatOpenAI of @langchain/openai with its Responses API', () => {
  describeSmoke(lab, { ...chat, name: 'responses', endings: { whole: 'completed', tool: 'completed' } });
});
