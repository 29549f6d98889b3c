import { consolePart } from '../../support/clients/console-parts.js';

interface FailuresPart {
  readonly ApiError: new (status: number, body: object) => Error;
  titleOf(error: Error, hasText?: boolean): string;
  mayPass(error: Error): boolean;
  withoutVariables(sentence: string): string;
  sentenceOf(error: { readonly message: string }, now: number): string;
}

const part = consolePart<FailuresPart>('base/failures.mjs');

describe('The title of a failed answer', () => {
  it('does not deny an answer of which a part is shown', async () => {
    const { ApiError, titleOf } = await part;
    const error = new ApiError(500, { error: 'cli_error', message: 'the program has exited' });
    expect([titleOf(error), titleOf(error, true)]).toEqual(['The model did not answer', 'The answer was cut off']);
  });
});

describe('An error of the service', () => {
  it.each<[object, string, boolean]>([
    [{ error: 'rate_limited' }, 'Too many requests', true],
    [{ error: 'payload_too_large' }, 'Too large to send', false],
    [{ error: 'cli_error', reason: 'crashed' }, 'The model did not answer', true],
    [{ error: 'cli_error', reason: 'model_unknown' }, 'The model did not answer', false],
    [{ error: 'of_a_newer_service', reason: 'new' }, 'Failed', false],
  ])('has a title, and can be repeated if that may help: %j', async (body, title, isRepeatable) => {
    const { ApiError, titleOf, mayPass } = await part;
    const error = new ApiError(500, { message: 'm', ...body });
    expect([titleOf(error), mayPass(error)]).toEqual([title, isRepeatable]);
  });
});

describe('An error message for readers who cannot configure the service', () => {
  it.each([
    ['All slots are taken (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE).', 'All slots are taken.'],
    ['Stored conversations cannot be read: MODEL_API_READ_BACK is false.', 'Stored conversations cannot be read.'],
    ['It is larger than 2 MB (MODEL_API_CONVERSATION_MEMORY_MB): start anew.', 'It is larger than 2 MB: start anew.'],
    ['MODEL_API_ALLOWED_MODELS has none of them.', 'a setting of the service has none of them.'],
    ['It has 2 jobs, and its limit is 2 (the option queue of its key).', 'It has 2 jobs, and its limit is 2.'],
    ['The search needs an API key with the option search=on.', 'The search needs an API key that allows it.'],
    ['Waited 5 ms for a slot: try again.', 'Waited 5 ms for a slot: try again.'],
  ])('names no variable: %s', async (sentence, shown) => {
    expect((await part).withoutVariables(sentence)).toBe(shown);
  });
});

describe('An error message of the service', () => {
  const now = new Date(2026, 10, 29, 18, 30).getTime();
  const at = (day: number, hour: number) => new Date(2026, 10, day, hour).toISOString();

  it.each([
    [
      `the daily budget of the API key is used up: 2728 of 2000 tokens; it resets at ${at(30, 1)}`,
      'Your daily budget is used up: 2,728 of 2,000 tokens. It resets at 01:00.',
    ],
    [
      `the monthly budget of the group biology is used up: $1.50 of $1.5; it resets at ${at(31, 1)}`,
      'The monthly budget of the group biology is used up: $1.50 of $1.5. It resets on 1 Dec 2026, 01:00.',
    ],
    [`the API key expired at ${at(29, 7)}: ask the operator`, 'Your key expired at 07:00: ask the operator.'],
    [`the access of ada expired at ${at(3, 7)}: ask`, 'Your access expired on 3 Nov 2026, 07:00: ask.'],
    [
      'this client may not wait: it has 2 waiting jobs, and its limit is 2 (the option queue of its key)',
      'You have 2 waiting jobs, and your limit is 2 (the option queue of its key).',
    ],
    ['this client may not wait: its key has 1 waiting job', 'Your key has 1 waiting job.'],
    [
      'the client has used its 5 web searches of this day (UTC)',
      'You have used your 5 web searches of this day (UTC).',
    ],
    [
      'rate limit of this API key reached: 9 requests in 60 s',
      'The rate limit of your key is reached: 9 requests in 60 s.',
    ],
    ['model: must be one of a, b', 'Model: must be one of a, b.'],
  ])('speaks to its reader, in the time zone of the reader: %s', async (message, shown) => {
    expect((await part).sentenceOf({ message }, now)).toBe(shown);
  });

  it('about a limit of the reader has a title that says so', async () => {
    const { ApiError, titleOf } = await part;
    const budget = { error: 'rate_limited', reason: 'budget', message: 'the daily budget of the API key is used up' };
    const queue = { error: 'concurrency_limited', message: 'this client may not wait: it has 2 waiting jobs' };
    const full = { error: 'concurrency_limited', message: 'all slots are taken and the queue is full' };
    const titles = [budget, queue, full].map((body) => titleOf(new ApiError(429, body)));
    expect(titles).toEqual(['Limit reached', 'Limit reached', 'The queue is full']);
  });
});
