import { OutgoingMessage } from 'node:http';
import type { RecordedAnswer } from '../../../src/shared/ipc/idempotency.js';
import type { Reply } from '../../../src/worker/http/exchange.js';
import { recordAnswer } from '../../../src/worker/idempotency/record-answer.js';
import { Recording } from '../../../src/worker/idempotency/recording.js';

const type = 'application/json';

function reply(headers: Record<string, string> = {}, hasStarted = true, isKept = true) {
  const kept: RecordedAnswer[] = [];
  const recording = new Recording(async (answer) => {
    kept.push(answer);
    return isKept;
  });
  const res = new OutgoingMessage() as unknown as Reply;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  Object.assign(res, { locals: { recording, error: null, job: { hasStarted } } });
  return { res, kept };
}

describe('The answer to a key', () => {
  it('has the headers that belong to it, and none of its exchange', async () => {
    const { res, kept } = reply({ 'x-session': 'live', 'X-Request-Id': 'mine', RateLimit: 'r=1', Location: '/jobs/1' });
    expect(await recordAnswer(res, { status: 200, type, last: '{}' })).toBe(false);
    expect(kept).toEqual([
      {
        status: 200,
        headers: { 'X-Session': 'live', Location: '/jobs/1', 'Content-Type': type },
        body: '{}',
        error: null,
      },
    ]);
  });

  it('is recorded once', async () => {
    const { res, kept } = reply();
    for (const last of ['first', 'second']) await recordAnswer(res, { status: 200, type, last });
    expect(kept.map(({ body }) => body)).toEqual(['first']);
  });

  it('is one where a job was accepted, which need not have started', async () => {
    const { res, kept } = reply({}, false);
    await recordAnswer(res, { status: 202, type, last: '{}' });
    expect(kept).toHaveLength(1);
  });

  it.each([
    ['a job that has not started', reply({}, false)],
    ['what says to come back', reply({ 'Retry-After': '5' })],
  ])('is not %s', async (_what, { res, kept }) => {
    expect(await recordAnswer(res, { status: 503, type, last: '{}' })).toBe(false);
    expect(kept).toEqual([]);
  });

  it('is told of where it is not kept', async () => {
    expect(await recordAnswer(reply({}, true, false).res, { status: 200, type, last: '' })).toBe(true);
  });
});
