import { Claims, type claimLimits } from '../../src/primary/idempotency/claims.js';
import type { IdempotencyStore } from '../../src/primary/store/contract/answers.js';
import type { ClaimItem, RecordedAnswer, RecordedBegin } from '../../src/shared/ipc/idempotency.js';
import { FakeClock } from './fake-clock.js';

export function recordedAnswer(body: string, differences: Partial<RecordedAnswer> = {}): RecordedAnswer {
  return { status: 200, headers: { 'Content-Type': 'application/json' }, body, error: null, ...differences };
}

/** All of a recorded answer, its body read piece by piece as a worker does. */
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

/** A request with a key, as a worker has it. */
export interface ClaimingRequest {
  readonly claim: number | null;
  readonly answer: RecordedAnswer | null;
  leave(): Promise<void>;
}

/** Requests with keys before one store, as they come from any worker. */
export class ClaimingRequests {
  readonly claims: Claims;

  constructor(store: IdempotencyStore, limits?: typeof claimLimits) {
    this.claims = new Claims(store, new FakeClock(), () => 7, limits);
  }

  /** Rejects as the service answers. */
  async send(key: string, digest = 'a digest', client = 'key ada'): Promise<ClaimingRequest> {
    const caller = new AbortController();
    const held = this.claims.hold({ client, key, digest }, caller.signal);
    const item = (await held.next()).value as ClaimItem;
    const end = held.next();
    const read = (from: number) => this.claims.read({ client, key, digest, from });
    return {
      claim: item.type === 'claimed' ? item.claim : null,
      answer: item.type === 'recorded' ? await wholeAnswer(item.answer, read) : null,
      leave: async () => {
        caller.abort();
        await end;
      },
    };
  }

  /** Has the first request answered. */
  async answer(key: string, body: string, digest?: string, client?: string): Promise<boolean> {
    const first = await this.send(key, digest, client);
    const isRecorded = await this.claims.record(first.claim ?? -1, recordedAnswer(body));
    await first.leave();
    return isRecorded;
  }

  async answerTo(key: string, digest?: string, client?: string): Promise<string | null> {
    const request = await this.send(key, digest, client);
    await request.leave();
    return request.answer?.body ?? null;
  }
}
