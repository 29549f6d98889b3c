import { type AnswerStore, answerTtlMs } from '../../../src/features/stores/contract/answers.js';
import type { ClientText } from '../../../src/shared/client.js';
import { RelayError } from '../../../src/shared/errors.js';
import { until } from '../basics/until.js';
import { recordedAnswer, wholeAnswer } from '../jobs/claims.js';
import type { StorePlaceForTests } from './store-contract.js';

const now = Date.UTC(2026, 0, 1);
const odd = "ü🚀\u0000 \u2028 “quoted” \\ '); DROP TABLE idempotency; --";
const ownClaim = { client: 'key ada' as const, key: odd } as const;
const digest = 'a digest';

/** Calls `keep` until the store is fast enough. */
async function untilStored(keep: () => Promise<unknown>): Promise<void> {
  const isStored = () =>
    keep().then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof RelayError && error.code === 'store_unavailable')) throw error;
      },
    );
  await until(isStored, 'the answer to be stored');
}

/**
 * Tests the contract of all stores for recorded answers. `isDurable`: the answers survive a restart. `isShared`:
 * several hosts use the store, so that the store's clock counts, and the first of two answers wins.
 */
export function describeAnswerStore(
  name: string,
  { isDurable, isShared = false }: { readonly isDurable: boolean; readonly isShared?: boolean },
  place: () => Promise<StorePlaceForTests>,
): void {
  async function withStore(
    test: (answers: AnswerStore, next: () => Promise<AnswerStore>) => Promise<void>,
  ): Promise<void> {
    await using at = await place();
    let store = await at.open();
    try {
      await test(store.answers, async () => {
        if (!isDurable) return store.answers;
        await store.close();
        store = await at.open();
        return store.answers;
      });
    } finally {
      await store.close();
    }
  }

  /** Returns the answer for this key and a request with this digest. */
  async function answerIn(answers: AnswerStore, asked: string) {
    const known = await answers.claimOrFind(ownClaim, asked, now);
    if (known.type !== 'answered') return known;
    const answer = await wholeAnswer(known.answer, (from) => answers.readAnswer(ownClaim, known.digest, from));
    return { digest: known.digest, answer };
  }

  const inStore = (
    title: string,
    test: (answers: AnswerStore, next: () => Promise<AnswerStore>) => Promise<void>,
    run: typeof it | typeof it.skip = it,
  ) => run(title, () => withStore(test));

  describe(`A store of answers (${name})`, () => {
    inStore('gives them back as they were, to their client alone', async (answers, next) => {
      const answer = recordedAnswer(odd.repeat(1000), { status: 500, error: 'cli_error', headers: { a: 'b' } });
      expect(await answers.claimOrFind(ownClaim, digest, now)).toEqual({ type: 'free' });
      await answers.keep(ownClaim, { digest, answer }, now);
      expect(await answerIn(answers, digest)).toEqual({ digest, answer });
      const nextStore = await next();
      expect(await answerIn(nextStore, 'another digest')).toEqual({ digest, answer });
      expect(await nextStore.readAnswer(ownClaim, 'another digest', 0)).toBe('');
      expect(await nextStore.readAnswer({ ...ownClaim, client: 'key bob' }, digest, 0)).toBe('');
      expect(await nextStore.claimOrFind({ ...ownClaim, client: 'key bob' }, digest, now)).toEqual({ type: 'free' });
      expect(await nextStore.claimOrFind({ ...ownClaim, key: 'other' }, digest, now)).toEqual({ type: 'free' });
    });

    inStore('gives a key again that was released', async (answers) => {
      await answers.claimOrFind(ownClaim, digest, now);
      answers.releaseKey(ownClaim);
      expect(await answers.claimOrFind(ownClaim, digest, now)).toEqual({ type: 'free' });
    });

    inStore(
      'gives none back that is a day old, removed or not',
      async (answers, next) => {
        await answers.keep(ownClaim, { digest, answer: recordedAnswer('x') }, now);
        const isThere = async (store: AnswerStore, at: number) =>
          (await store.claimOrFind(ownClaim, digest, at)).type === 'answered';
        expect(await isThere(await next(), now + answerTtlMs - 1)).toBe(true);
        const nextStore = await next();
        expect(await isThere(nextStore, now + answerTtlMs)).toBe(false);
        nextStore.expireAnswers(now + answerTtlMs);
        expect(await isThere(nextStore, now)).toBe(false);
      },
      isShared ? it.skip : it,
    );

    inStore(
      'keeps the last one of a key',
      async (answers, next) => {
        for (const body of ['first', 'second'])
          await answers.keep(ownClaim, { digest, answer: recordedAnswer(body) }, now);
        expect(await answerIn(await next(), digest)).toMatchObject({ answer: { body: 'second' } });
      },
      isShared ? it.skip : it,
    );

    inStore(
      'makes room, after a restart too: the oldest of the client that has the most goes',
      async (answers, next) => {
        const body = 'x'.repeat(1024 * 1024);
        // Redis must keep an answer within 200 ms, which a busy machine may exceed.
        const keep = (store: AnswerStore, client: ClientText, key: string, at: number, text = body) =>
          untilStored(() => store.keep({ client, key }, { digest, answer: recordedAnswer(text) }, at));
        const isThere = async (store: AnswerStore, client: ClientText, key: string) =>
          (await store.claimOrFind({ client, key }, digest, now)).type === 'answered';
        await keep(answers, 'key quiet', '1', now, 'q');
        for (let n = 0; n < 40; n++) await keep(answers, 'key greedy', String(n), now + n);
        const after = await next();
        for (let n = 40; n < 70; n++) await keep(after, 'key greedy', String(n), now + n);
        expect([await isThere(after, 'key quiet', '1'), await isThere(after, 'key greedy', '69')]).toEqual([
          true,
          true,
        ]);
        expect([await isThere(after, 'key greedy', '0'), await isThere(after, 'key greedy', '40')]).toEqual([
          false,
          true,
        ]);
      },
    );
  });
}
