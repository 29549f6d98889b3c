import { type SdkFace, sdkLab } from '../support/sdk-lab.js';
import { describeAnswers } from './answers.js';

const chat: SdkFace = {
  name: 'chat',
  endings: { whole: 'stop', tool: 'tool_calls' },
  structured: ['parse', 'parseStream'],
  has: ['models', 'helper', 'jsonObject', 'requestId'],
};

const lab = sdkLab('openai');

describe('chat.completions of openai', () => {
  describeAnswers(lab, chat);
});
