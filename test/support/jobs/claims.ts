import { Claims, type claimLimits } from '../../../src/features/idempotency/claims.js';
import type { ClaimItem } from '../../../src/features/idempotency/shared.js';
import type { AnswerStore, RecordedAnswer, RecordedBegin } from '../../../src/features/stores/contract/answers.js';
import type { ClientText } from '../../../src/shared/client.js';
import { FakeClock } from '../basics/fake-clock.js';

export function recordedAnswer(body: string, differences: Partial<RecordedAnswer> = {}): RecordedAnswer {
  return { status: 200, headers: { 'Content-Type': 'application/json' }, body, error: null, ...differences };
}

/** Returns a recorded answer with its whole body, read piece by piece as in a worker. */
export async function wholeAnswer(
  { begin, bytes, ...head }: RecordedBegin,
  read: (from: number) => Promise<string>,
): Promise<RecordedAnswer> {
  let body = begin;
  for (let from = Buffer.byteLength(begin); from < bytes; from = Buffer.byteLength(body)) {
    const piece = await read(from);
    if (piece === '') throw new Error(`the body ends after ${from} of ${bytes} bytes`);
    body += piece;
  }
  return { ...head, body };
}

/** Request with an Idempotency-Key, from the worker's view. */
export interface ClaimingRequest {
  readonly claim: number | null;
  readonly answer: RecordedAnswer | null;
  leave(): Promise<void>;
}

/** Requests with Idempotency-Keys from any worker, against one store. */
export class ClaimingRequests {
  readonly claims: Claims;

  constructor(store: AnswerStore, limits?: typeof claimLimits) {
    this.claims = new Claims(store, new FakeClock(), () => 7, undefined, limits);
  }

  /** Claims the key. Rejects with the error of the service. */
  async send(key: string, digest = 'a digest', client: ClientText = 'key ada'): Promise<ClaimingRequest> {
    const caller = new AbortController();
    const claim = this.claims.hold({ client, key, digest }, caller.signal);
    const item = (await claim.next()).value as ClaimItem;
    const end = claim.next();
    const read = (from: number) => this.claims.readAnswer({ client, key, digest, from });
    return {
      claim: item.type === 'claimed' ? item.claim : null,
      answer: item.type === 'recorded' ? await wholeAnswer(item.answer, read) : null,
      leave: async () => {
        caller.abort();
        await end;
      },
    };
  }

  /** Sends the first request and records its answer. */
  async answer(key: string, body: string, digest?: string, client?: ClientText): Promise<boolean> {
    const first = await this.send(key, digest, client);
    const isRecorded = await this.claims.record(first.claim ?? -1, recordedAnswer(body));
    await first.leave();
    return isRecorded;
  }

  async answerTo(key: string, digest?: string, client?: ClientText): Promise<string | null> {
    const request = await this.send(key, digest, client);
    await request.leave();
    return request.answer?.body ?? null;
  }
}
