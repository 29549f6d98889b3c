import { createPart, openAiDoor } from '../../../../src/features/openai/worker.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';
import type { Handler, Reply } from '../../../../src/worker/http/exchange.js';

const names = ['mayAsk', 'mayCall', 'needsService', 'namesUser', 'capped', 'once'];
const guards = Object.fromEntries(names.map((name) => [name, name]));
const { routes } = createPart({ guards, jobs: {} } as unknown as WorkerCore);

it('Errors have the form of OpenAI’s API at all paths below /v1', () => {
  const isInForm = (path: string) => openAiDoor.errorFormOf({ path, headers: {} }) !== null;
  expect(['/v1', '/v1/models', '/v1/no-such-path'].map(isInForm)).toEqual([true, true, true]);
  expect(['/', '/v1x', '/models', '/chat/completions'].map(isInForm)).toEqual([false, false, false, false]);
});

it('Only requests that run models have the checks of a job', () => {
  const checksOf = (method: 'get' | 'post' | 'delete') =>
    Object.fromEntries(
      routes.flatMap(({ route, [method]: steps }) => (steps === undefined ? [] : [[route, steps.slice(0, -1)]])),
    );
  const beforeJob = ['mayAsk', 'needsService', 'namesUser', 'capped', 'once'];
  const mayCall = ['mayCall', 'namesUser'];
  expect(checksOf('post')).toEqual({
    '/v1/chat/completions': beforeJob,
    '/v1/completions': beforeJob,
    '/v1/responses': beforeJob,
    '/v1/responses/{response_id}/cancel': mayCall,
  });
  const others = Object.values({ ...checksOf('get'), ...checksOf('delete') });
  expect(others.every((each) => `${each}` === `${mayCall}`)).toBe(true);
});

describe('The path of a stored response', () => {
  const [refuse] = routes.find(({ route }) => route === '/v1/responses/{response_id}')?.before ?? [];

  /** Returns the error message, or `next` if the request is passed on. */
  function outcomeOf(method: string, id: string): string {
    let outcome = '';
    const req = { method, params: { response_id: id } } as unknown as Parameters<Handler>[0];
    try {
      refuse?.(req, {} as Reply, () => (outcome = 'next'));
    } catch (error) {
      outcome = (error as Error).message;
    }
    return outcome;
  }

  it('is also that of calls that the service does not have, whose errors name the alternative', () => {
    expect(outcomeOf('POST', 'compact')).toMatch(/^this service does not compact a conversation: /);
    expect(outcomeOf('POST', 'input_tokens')).toMatch(/POST \/v1\/messages\/count_tokens counts/);
  });

  it.each([
    ['GET', 'compact'],
    ['POST', 'resp_1'],
    ['POST', 'toString'],
  ])('is not refused for other requests: %s %s', (method, id) => {
    expect(outcomeOf(method, id)).toBe('next');
  });
});
