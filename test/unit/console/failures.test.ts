import { consolePart } from '../../support/clients/console-parts.js';

const part = consolePart<{ withoutVariables(sentence: string): string }>('base/failures.mjs');

describe('An error message for readers who cannot configure the service', () => {
  it.each([
    ['All slots are taken (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE).', 'All slots are taken.'],
    ['Stored conversations cannot be read: MODEL_API_READ_BACK is false.', 'Stored conversations cannot be read.'],
    ['It is larger than 2 MB (MODEL_API_CONVERSATION_MEMORY_MB): start anew.', 'It is larger than 2 MB: start anew.'],
    ['MODEL_API_ALLOWED_MODELS has none of them.', 'a setting of the service has none of them.'],
    ['Waited 5 ms for a slot: try again.', 'Waited 5 ms for a slot: try again.'],
  ])('names no variable: %s', async (sentence, shown) => {
    expect((await part).withoutVariables(sentence)).toBe(shown);
  });
});
