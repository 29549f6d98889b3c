import { type SdkFace, sdkLab } from '../../support/clients/sdk-lab.js';
import { describeAnswers } from './answers.js';
import { describeClaude } from './claude.js';
import { describeFailures } from './failures.js';
import { describeLoops } from './loops.js';
import { describeRetries } from './retries.js';
import { describeThoughts } from './thoughts.js';

const compatible: SdkFace = {
  name: 'compatible',
  dialect: 'openai',
  path: '/v1/chat/completions',
  endings: { whole: 'stop', tool: 'tool-calls' },
  structured: ['parse', 'parseStream', 'generateObject', 'streamObject'],
  objects: ['jsonObject'],
  has: ['requestId'],
  classOf: () => 'APICallError',
  mindsAdvice: false,
};

const openai: SdkFace = { ...compatible, name: 'openai', path: '/v1/responses' };

const lab = sdkLab('ai');

describe('ai with @ai-sdk/openai-compatible', () => {
  describeAnswers(lab, compatible);
  describeClaude(lab, compatible);
  describeFailures(lab, compatible);
  describeRetries(lab, compatible);
  describeThoughts(lab, compatible);
  describeLoops(lab, compatible.name);
});

describe('ai with @ai-sdk/openai', () => {
  describeAnswers(lab, openai);
  describeClaude(lab, openai);
  describeFailures(lab, openai);
  describeRetries(lab, openai);
  describeThoughts(lab, openai);
  describeLoops(lab, openai.name);
});
