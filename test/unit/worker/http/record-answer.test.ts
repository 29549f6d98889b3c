import { OutgoingMessage } from 'node:http';
import type { NextFunction, Request } from 'express';
import type { RecordedAnswer } from '../../../../src/shared/ipc/idempotency.js';
import type { Primary, Reply } from '../../../../src/worker/http/exchange.js';
import { idempotency } from '../../../../src/worker/http/idempotency.js';
import type { IdempotentRequest, LastOfAnswer } from '../../../../src/worker/http/sent-answer.js';

const type = 'application/json';

interface Claimed {
  readonly kept: RecordedAnswer[];
  /** Records these, one after the other, while the request has its key. */
  record(...answers: Omit<LastOfAnswer, 'type'>[]): Promise<boolean[]>;
}

function claimed(headers: Record<string, string> = {}, hasStarted = true, isKept = true): Claimed {
  const kept: RecordedAnswer[] = [];
  const primary = {
    async *stream() {
      yield { type: 'claimed', claim: 1 };
    },
    async call(_name: string, { answer }: { answer: RecordedAnswer }) {
      kept.push(answer);
      return { isRecorded: isKept };
    },
  } as unknown as Primary;
  const res = new OutgoingMessage() as unknown as Reply;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  const locals = { idempotent: null, client: 'user ada', route: '/ask', error: null, job: { hasStarted } };
  Object.assign(res, { locals, req: { method: 'POST' } });
  const next: NextFunction = () => {};
  idempotency(primary)({ rawHeaders: ['Idempotency-Key', 'k'] } as Request, res, next);
  const idempotent = res.locals.idempotent as IdempotentRequest;
  return {
    kept,
    record: async (...answers) => {
      const recorded: boolean[] = [];
      await idempotent.once('plain', async () => {
        for (const answer of answers) recorded.push(await idempotent.record({ ...answer, type }));
      });
      return recorded;
    },
  };
}

describe('The answer to a key', () => {
  it('has the headers that belong to it, and none of its exchange', async () => {
    const headers = { 'x-session': 'live', 'X-Request-Id': 'mine', RateLimit: 'r=1', Location: '/jobs/1' };
    const { kept, record } = claimed(headers);
    expect(await record({ status: 200, last: '{}' })).toEqual([true]);
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
    const { kept, record } = claimed();
    await record({ status: 200, last: 'first' }, { status: 200, last: 'second' });
    expect(kept.map(({ body }) => body)).toEqual(['first']);
  });

  it('is one where a job was accepted, which need not have started', async () => {
    const { kept, record } = claimed({}, false);
    await record({ status: 202, last: '{}' });
    expect(kept).toHaveLength(1);
  });

  it.each([
    ['a job that has not started', claimed({}, false)],
    ['an answer that says to come back', claimed({ 'Retry-After': '5' })],
  ])('is not %s', async (_what, { record, kept }) => {
    expect(await record({ status: 503, last: '{}' })).toEqual([true]);
    expect(kept).toEqual([]);
  });

  it('is not said to be recorded where it could not be stored', async () => {
    expect(await claimed({}, true, false).record({ status: 200, last: '' })).toEqual([false]);
  });
});
