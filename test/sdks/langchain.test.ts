import { type SdkFace, sdkLab } from '../support/sdk-lab.js';
import { describeAnswers } from './answers.js';

const chat: SdkFace = {
  name: 'chat',
  endings: { whole: 'stop', tool: 'tool_calls' },
  structured: ['parse', 'jsonSchema', 'functionCalling'],
  has: [],
};

const lab = sdkLab('langchain');

describe('ChatOpenAI of @langchain/openai', () => {
  describeAnswers(lab, chat);
});
