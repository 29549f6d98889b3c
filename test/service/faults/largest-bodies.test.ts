import { largestBody } from '../../support/doors/largest-bodies.js';
import { startWatched, type WatchedService } from '../../support/service/stalls.js';

/**
 * Limit of the processor time that the longest block of an event loop takes. The goal is 50 ms for GET /health, which
 * `npm run bench -- largest-bodies` measures; a test machine may be busy. Only work of more than linear complexity, or
 * a regular expression over the whole text, exceeds this limit. The first body took a worker 1.6 s, and now takes 0.2
 * s.
 */
const limitMs = 700;

describe('A valid body of the maximum size', () => {
  let watched: WatchedService;
  beforeAll(async () => {
    watched = await startWatched();
  });
  afterAll(() => watched[Symbol.asyncDispose]());

  it.each([
    ['/v1/chat/completions', 'answer: blanks'],
    ['/v1/messages', 'answer: Chinese'],
    ['/v1/chat/completions', 'many reminders behind results'],
  ])('does not block an event loop for long: %s, %s', async (path, field) => {
    const body = largestBody(path, field);
    await watched.takeStalls();
    expect((await watched.service.post(path, JSON.parse(body))).status).toBe(200);
    const { worker, primary } = await watched.takeStalls();
    expect(Math.max(worker.processorMs, primary.processorMs)).toBeLessThan(limitMs);
  });
});
