import { largestBody } from '../../support/largest-bodies.js';
import { startWatched, type WatchedService } from '../../support/stalls.js';

/**
 * The goal is 50 ms for GET /health, and `npm run bench -- largest-bodies` measures what stands against it. A test machine
 * may be busy, so this is the processor time of the longest stop of an event loop, with a limit that only more than linear
 * work, or a regular expression over all of a text, exceeds: the first body took a worker 1.6 s, and now takes it 0.2 s.
 */
const limitMs = 700;

describe('A legal body of the largest size', () => {
  let watched: WatchedService;
  beforeAll(async () => {
    watched = await startWatched();
  });
  afterAll(() => watched[Symbol.asyncDispose]());

  it.each([
    ['/v1/chat/completions', 'answer: blanks'],
    ['/v1/messages', 'answer: Chinese'],
    ['/v1/chat/completions', 'many reminders behind results'],
  ])('stops no event loop for long: %s, %s', async (path, field) => {
    const body = largestBody(path, field);
    await watched.takeStalls();
    expect((await watched.service.post(path, JSON.parse(body))).status).toBe(200);
    const { worker, primary } = await watched.takeStalls();
    expect(Math.max(worker.processorMs, primary.processorMs)).toBeLessThan(limitMs);
  });
});
