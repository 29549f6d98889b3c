import type { SdkAnswer } from '../../support/clients/sdk-client.js';
import { keys, type SdkFace, sdkLab } from '../../support/clients/sdk-lab.js';
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
  has: ['models'],
  classOf: openAiClass,
};

const responses: SdkFace = {
  ...chat,
  name: 'responses',
  path: '/v1/responses',
  endings: { whole: 'completed', tool: 'completed' },
  objects: [],
  has: [],
};

/** Answer of a background response whose stream was cut. */
interface Survived extends SdkAnswer {
  readonly numbers: readonly number[];
  /** Deltas of a helper that begins in the middle. */
  readonly later: string;
}

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
  it.each([{}, { thinks: true }])('continue their background stream after each cut: %j', async (more) => {
    const prompt = 'drip 60 10';
    const input = { prompt, model: 'default', key: keys.all, ...more };
    const { result } = await lab.client.call<Survived>(lab.strict, 'responses', 'survive', input);
    const { numbers, text, streamed, later, finish } = result;
    const words = Array.from({ length: 60 }, (_, index) => `${index + 1} `).join('');
    expect([text, streamed, finish]).toEqual([words, words, 'completed']);
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(words.endsWith(later)).toBe(true);
  });

  describeAnswers(lab, responses);
  describeClaude(lab, responses);
  describeFailures(lab, responses);
  describeRetries(lab, responses);
  describeThoughts(lab, responses);
  describeLoops(lab, responses.name, ['steps', 'stepsStream', 'linkedSteps', 'linkedStepsStream']);
});
