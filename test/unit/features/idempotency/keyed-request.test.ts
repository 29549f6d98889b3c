import { OutgoingMessage } from 'node:http';
import type { NextFunction, Request } from 'express';
import type { KeyedRequest } from '../../../../src/features/idempotency/keyed-request.js';
import { maxRecordedBytes } from '../../../../src/features/idempotency/shared.js';
import type { RecordedAnswer } from '../../../../src/features/stores/contract/answers.js';
import type { Primary, Reply } from '../../../../src/worker/http/exchange.js';
import { keyGuard } from '../../../support/doors/key-guard.js';

const type = 'application/json';

interface SomeAnswer {
  readonly status: number;
  /** Data sent before the last piece. */
  readonly begun?: readonly (string | Buffer)[];
  readonly last: Parameters<KeyedRequest['record']>[2];
}

interface Claimed {
  readonly kept: RecordedAnswer[];
  /** Records these answers, one after the other, while the request has its key. */
  record(...answers: SomeAnswer[]): Promise<boolean[]>;
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
  const locals = { recorder: null, client: 'user ada', route: '/ask', error: null, job: { hasStarted } };
  Object.assign(res, { locals, req: { method: 'POST', params: {} } });
  const next: NextFunction = () => {};
  keyGuard(primary)({ rawHeaders: ['Idempotency-Key', 'k'] } as Request, res, next);
  const idempotent = res.locals.recorder as KeyedRequest;
  return {
    kept,
    record: async (...answers) => {
      const recorded: boolean[] = [];
      await idempotent.once(hasStarted ? 'plain' : 'background', async () => {
        for (const { status, begun = [], last } of answers) {
          for (const piece of begun) idempotent.addPiece(piece);
          recorded.push((await idempotent.record(status, type, last)) === null);
        }
      });
      return recorded;
    },
  };
}

describe('The recorded answer for an idempotency key', () => {
  it('has its relevant headers, and none of the exchange', async () => {
    const headers = { 'x-session': 'live', 'X-Request-Id': 'mine', RateLimit: 'r=1', Location: '/jobs/1' };
    const { kept, record } = claimed(headers);
    expect(await record({ status: 200, last: '{}' })).toEqual([true]);
    const kinds = { 'X-Session': 'live', Location: '/jobs/1', 'Content-Type': type };
    expect(kept).toEqual([{ status: 200, headers: kinds, body: '{}', error: null }]);
  });

  it('is recorded once', async () => {
    const { kept, record } = claimed();
    await record({ status: 200, last: 'first' }, { status: 200, last: 'second' });
    expect(kept.map(({ body }) => body)).toEqual(['first']);
  });

  it('is recorded for an accepted background job, even before its start', async () => {
    const { kept, record } = claimed({}, false);
    await record({ status: 200, last: '{}' });
    expect(kept).toHaveLength(1);
  });

  it.each([
    ['a job that was not accepted', claimed({}, false)],
    ['an answer that says to come back', claimed({ 'Retry-After': '5' })],
  ])('is not recorded for %s', async (_what, { record, kept }) => {
    expect(await record({ status: 503, last: '{}' })).toEqual([true]);
    expect(kept).toEqual([]);
  });

  it('is reported as not recorded if it could not be stored', async () => {
    expect(await claimed({}, true, false).record({ status: 200, last: '' })).toEqual([false]);
  });

  it('has the bytes as sent, including a character that was split in two', async () => {
    const { kept, record } = claimed();
    const horse = Buffer.from('🐎');
    const begun = ['a ', horse.subarray(0, 2), horse.subarray(2)];
    await record({ status: 200, begun, last: bodyOf(2, '!') });
    expect(kept.map(({ body }) => body)).toEqual(['a 🐎!!']);
  });

  it('is recorded at the maximum size, and not above it', async () => {
    const [fits, not] = [claimed(), claimed()];
    expect(await fits.record({ status: 200, last: 'x'.repeat(maxRecordedBytes) })).toEqual([true]);
    expect(await not.record({ status: 200, begun: ['x'.repeat(maxRecordedBytes), 'y'], last: 'z' })).toEqual([false]);
    expect([fits.kept.length, not.kept.length]).toEqual([1, 0]);
  });

  it('is read no further than the maximum size', async () => {
    const { kept, record } = claimed();
    const taken: string[] = [];
    const last = bodyOf(100, 'x'.repeat(maxRecordedBytes / 2), taken);
    expect(await record({ status: 200, last })).toEqual([false]);
    expect(taken).toHaveLength(3);
    expect(kept).toEqual([]);
  });
});

function bodyOf(count: number, piece: string, taken: string[] = []): SomeAnswer['last'] {
  async function* pieces() {
    for (let n = 0; n < count; n++) {
      taken.push(piece);
      yield piece;
    }
  }
  return { short: null, length: async () => null, pieces };
}
