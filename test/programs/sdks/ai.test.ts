import { sdkLab } from '../../support/clients/sdk-lab.js';
import { describeSmoke, type WrappedFace } from './smoke.js';

const compatible: WrappedFace = {
  name: 'compatible',
  endings: { whole: 'stop', tool: 'tool-calls' },
  structured: ['parse', 'parseStream', 'generateObject', 'streamObject'],
  objects: ['jsonObject'],
  refusal: 'APICallError',
};

const lab = sdkLab('ai', ['demo', 'command', 'claude', 'strict']);

describe('ai with @ai-sdk/openai-compatible', () => {
  describeSmoke(lab, compatible);
});

describe('ai with @ai-sdk/openai', () => {
  describeSmoke(lab, { ...compatible, name: 'openai' });
});
