import { allEfforts } from '../../../../src/shared/job.js';
import { always, answerEvents, sdkDoor } from '../../../support/doors/sdk-door.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const messages = [{ role: 'user', content: 'Hi' }];

/** An effort in a request to each API, with the field in `X-Ignored-Parameters`. */
const requests: readonly [path: string, field: string, body: (effort: string) => object][] = [
  ['/ask', 'effort', (effort) => ({ prompt: 'Hi', effort })],
  ['/chat', 'effort', (effort) => ({ message: 'Hi', effort })],
  ['/v1/chat/completions', 'reasoning_effort', (effort) => ({ messages, reasoning_effort: effort })],
  ['/v1/chat/completions', 'reasoning_effort', (effort) => ({ input: 'Hi', reasoning: { effort } })],
  ['/v1/completions', 'reasoning_effort', (effort) => ({ prompt: 'Hi', reasoning_effort: effort })],
  ['/v1/responses', 'reasoning.effort', (effort) => ({ input: 'Hi', reasoning: { effort }, store: false })],
  ['/v1/messages', 'output_config.effort', (effort) => ({ messages, max_tokens: 9, output_config: { effort } })],
  ['/api/chat', 'think', (think) => ({ messages, think, stream: false })],
  ['/api/generate', 'think', (think) => ({ prompt: 'Hi', think, stream: false })],
];

describe('An effort', () => {
  it.each(requests)('reaches the model through %s, in the field %s', async (path, _, body) => {
    await using door = await sdkDoor(always(...eventsOf(false), ...answerEvents('x'), jobDone()));
    for (const effort of allEfforts) {
      const { headers } = await door.post(path, body(effort));
      expect([door.job.effort, headers.get('x-ignored-parameters')]).toEqual([effort, null]);
    }
  });

  it.each(requests)('that the model does not have is listed by %s as %s', async (path, field, body) => {
    await using door = await sdkDoor(always(...eventsOf(true), ...answerEvents('x'), jobDone()));
    const { headers } = await door.post(path, body('max'));
    expect(headers.get('x-ignored-parameters')).toBe(field);
  });
});

function eventsOf(ignoresEffort: boolean) {
  return [
    { type: 'job-admitted', session: 'replay', ignoresEffort },
    { type: 'job-start', queueMs: 1 },
  ] as const;
}
