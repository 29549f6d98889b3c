import { resultWrapper } from '../../../../src/features/mcp/messages.js';
import { askFormat } from '../../../../src/features/mcp/results.js';
import { MemoryAnswers } from '../../../../src/features/stores/memory/memory-store.js';
import type { JobEvent } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { call, messagesIn } from '../../../support/clients/mcp.js';
import { keyedRoutes } from '../../../support/doors/keyed-routes.js';
import { answerEvents, begun } from '../../../support/doors/sdk-door.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const progress = { _meta: { progressToken: 'mine' } };
const message = call('ask', { prompt: 'Hi' }, progress);
const key = { 'idempotency-key': 'k' };
const events = { accept: 'application/json, text/event-stream' };

function open(...told: readonly JobEvent[]) {
  return keyedRoutes(async function* () {
    yield* told;
  }, new MemoryAnswers());
}

describe('A repeated call with an idempotency key', () => {
  it.each([{}, events])('gets the first answer, and runs no model', async (accept) => {
    await using routes = await open(...begun, ...answerEvents('Hel', 'lo'), jobDone());
    const send = () => routes.post('/mcp', message, { ...key, ...accept });
    const [first, again] = [await send(), await send()];
    expect([again.status, again.text, again.isReplayed]).toEqual([200, first.text, true]);
    expect(first.text).toContain('"text":"Hello"');
    expect(routes.jobs).toHaveLength(1);
  });

  it('gets the failure of the model', async () => {
    await using routes = await open(...begun, jobFailed('timeout'));
    const send = () => routes.post('/mcp', call('ask', { prompt: 'Hi' }), key);
    const [first, again] = [await send(), await send()];
    expect(JSON.parse(first.text).result).toMatchObject({ isError: true });
    expect([again.status, again.text, again.isReplayed]).toEqual([200, first.text, true]);
    expect(routes.jobs).toHaveLength(1);
  });
});

describe('The progress of a call', () => {
  function stream() {
    const clock = new FakeClock();
    const opening = { requestId: 'r', model: 'm', forms: {}, hasTools: false, hasThoughts: false };
    return { clock, format: askFormat(resultWrapper(1, null), 'mine', clock).stream(opening) };
  }
  const notesIn = (text: string) =>
    messagesIn(text).map(({ params }) => params as unknown as { progress: number; message: string });

  it('increases with each notification and with the text, which it reports once a second', async () => {
    const { clock, format } = stream();
    const told = [
      format.formatPosition(3, 'slot'),
      format.formatStart(5),
      format.formatEvent(textDelta('x'.repeat(100))),
      format.formatEvent(textDelta('y')),
    ];
    expect(told.map((text) => notesIn(text)[0]?.progress)).toEqual([1, 2, 100, undefined]);
    await clock.advance(1000);
    expect(notesIn(format.formatEvent(textDelta('z')))[0]).toMatchObject({
      progress: 102,
      message: expect.stringContaining('102'),
    });
  });

  it('is sent again during silence, and also increases then', () => {
    const { format } = stream();
    expect(notesIn(format.ping?.() ?? '')).toMatchObject([{ progress: 1, message: 'the job waits' }]);
    format.formatStart(5);
    expect(notesIn(format.ping?.() ?? '')).toMatchObject([{ progress: 3, message: 'the model is working' }]);
  });
});
