import { invalid } from '../../../shared/errors.js';
import { type RecordedHead, recordedPieceBytes } from '../../../shared/ipc/idempotency.js';
import { AnswerShares, isExpired, maxAnswerBytes } from '../../idempotency/answer-shares.js';
import {
  type AnswerOfKey,
  type ClientKey,
  type IdempotencyStore,
  type KnownKey,
  nameOfKey,
  pieceOf,
} from '../contract/answers.js';
import type { ConversationJournal } from '../contract/conversations.js';
import type { Store, StoreUpkeep } from '../contract/store.js';
import type { UsageStore } from '../contract/usage.js';
import { MemoryJobs } from './memory-jobs.js';

/** Nothing outlives the service. */
export function memoryStore(): Store {
  const answers = new MemoryAnswers();
  return {
    kind: 'memory',
    conversations: noJournal,
    windows: null,
    jobs: new MemoryJobs(),
    usage: noUsageStore,
    upkeep: memoryUpkeep(answers),
    answers,
    isUp: true,
    observe: () => {},
    close: async () => {},
  };
}

export const noJournal: ConversationJournal = {
  restore: async function* () {},
  commit: async () => {},
  remove: async () => {},
  forget: () => {},
};

const noUsageStore: UsageStore = { restore: async function* () {}, add: async () => {}, report: null };

export function memoryUpkeep(answers: { removeOf(client: string): number }): StoreUpkeep {
  return {
    backup: async () => {
      throw invalid('MODEL_API_STORE', 'the store is in memory: there is no file to back up');
    },
    verify: async () => {
      return { kind: 'memory', path: null, version: null, bytes: 0, faults: [], rows: {}, expired: {}, copies: [] };
    },
    purge: async (client) => ({ idempotency: answers.removeOf(client) }),
    copies: async () => [],
  };
}

/** The body of an answer is a buffer: it stays outside of the heap. */
interface MemoryAnswer {
  readonly digest: string;
  readonly head: RecordedHead;
  readonly body: Buffer;
  readonly recordedAt: number;
}

/** Owns the answers of a service that stores nothing beyond its end. */
export class MemoryAnswers implements IdempotencyStore {
  readonly #shares: AnswerShares;
  readonly #answers = new Map<string, MemoryAnswer>();

  constructor(maxBytes = maxAnswerBytes) {
    this.#shares = new AnswerShares(maxBytes);
  }

  async take(key: ClientKey, _digest: string, at: number): Promise<KnownKey> {
    const found = this.#answers.get(nameOfKey(key));
    if (found === undefined || isExpired(found, at)) return { type: 'free' };
    const { digest, head, body } = found;
    return { type: 'answered', digest, answer: { ...head, begin: pieceAt(body, 0), bytes: body.length } };
  }

  async read(key: ClientKey, digest: string, from: number): Promise<string> {
    const found = this.#answers.get(nameOfKey(key));
    return found?.digest === digest ? pieceAt(found.body, from) : '';
  }

  async keep(key: ClientKey, { digest, answer }: AnswerOfKey, at: number): Promise<void> {
    const { body: text, ...head } = answer;
    const body = Buffer.from(text);
    this.#answers.set(nameOfKey(key), { digest, head, body, recordedAt: at });
    for (const gone of this.#shares.add({ ...key, bodyBytes: body.length, recordedAt: at })) this.#drop(gone);
  }

  /** Returns how many. */
  removeOf(client: string): number {
    const own = this.#shares.removeOf(client);
    for (const entry of own) this.#drop(entry);
    return own.length;
  }

  release(): void {}

  expire(at: number): void {
    for (const expired of this.#shares.expire(at)) this.#drop(expired);
  }

  #drop(key: ClientKey): void {
    this.#answers.delete(nameOfKey(key));
  }
}

function pieceAt(body: Buffer, from: number): string {
  return pieceOf(body.subarray(from, from + recordedPieceBytes));
}
