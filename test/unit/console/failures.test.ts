import { consolePart } from '../../support/clients/console-parts.js';

interface FailuresPart {
  readonly ApiError: new (status: number, body: object) => Error;
  titleOf(error: Error, hasText?: boolean): string;
  withoutVariables(sentence: string): string;
}

const part = consolePart<FailuresPart>('base/failures.mjs');

describe('The title of a failed answer', () => {
  it('does not deny an answer of which a part is shown', async () => {
    const { ApiError, titleOf } = await part;
    const error = new ApiError(500, { error: 'cli_error', message: 'the program has exited' });
    expect([titleOf(error), titleOf(error, true)]).toEqual(['The model did not answer', 'The answer was cut off']);
  });
});

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
