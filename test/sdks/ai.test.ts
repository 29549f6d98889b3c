import { type SdkFace, sdkLab } from '../support/sdk-lab.js';
import { describeAnswers } from './answers.js';

const compatible: SdkFace = {
  name: 'compatible',
  endings: { whole: 'stop', tool: 'tool-calls' },
  structured: ['parse', 'parseStream', 'generateObject', 'streamObject'],
  has: ['requestId'],
};

const lab = sdkLab('ai');

describe('ai with @ai-sdk/openai-compatible', () => {
  describeAnswers(lab, compatible);
});
