import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import type {
  ResponseKey,
  ResponseLimits,
  ResponseNode,
  ResponseStore,
} from '../../../src/features/stores/contract/responses.js';
import type { ClientText } from '../../../src/shared/client.js';
import { delay, systemClock } from '../../../src/shared/clock.js';
import type { ContinuedText, Message } from '../../../src/shared/job.js';
import type { StorePlaceForTests } from './store-contract.js';

const now = Date.UTC(2026, 0, 1);
const day = 86_400_000;
const limits: ResponseLimits = { maxResponses: 1000, maxBytes: 64 * 1024 * 1024, ttlMs: day };
const after = now - day;
const odd = "ü🚀\u0000 \u2028 “quoted” \\ '); DROP TABLE responses; --";
const image = { mediaType: 'image/png', data: Buffer.from('no picture').toString('base64'), at: 1 } as const;

/** Returns the messages that one response adds: a question and its answer. */
export function turnOf(question: string): Message[] {
  return [
    { role: 'user', text: question, images: [image] },
    { role: 'assistant', text: `to ${question}`, calls: [{ id: 'c', name: 'look', input: '{}' }] },
  ];
}

/** Returns the head of a text of two messages. */
export function headOf(id: string, bytes = 100): ContinuedText {
  return { id, start: '0', hash: id, messageCount: 2, bytes, hasImages: true, openCalls: [] };
}

/** Returns a response whose id is also its question and its body. */
export function nodeOf(id: string, previous: string | null = null, more: Partial<ResponseNode> = {}): ResponseNode {
  return {
    id,
    client: 'key ada',
    previous,
    createdAt: now,
    messages: turnOf(id),
    head: `head of ${id}`,
    body: id,
    ...more,
  };
}

/** Stores a chain of responses, each following the one before. */
async function putChain(store: ResponseStore, ids: readonly string[], to: ResponseLimits = limits) {
  const verdicts: string[] = [];
  for (const [index, id] of ids.entries())
    verdicts.push(await store.putResponse(nodeOf(id, ids[index - 1] ?? null), to));
  return verdicts;
}

/** Returns the whole body, read piece by piece; null if missing. */
async function bodyOf(store: ResponseStore, key: ResponseKey, notBefore = after): Promise<string | null> {
  let body = '';
  for (let from = 0; ; from = Buffer.byteLength(body)) {
    const piece = await store.readPiece(key, from, notBefore);
    if (piece === null) return null;
    body += piece.text;
    if (piece.text === '' || Buffer.byteLength(body) >= piece.bytes) return body;
  }
}

/** Returns the ids that the store finds for this client. */
async function found(store: ResponseStore, ids: readonly string[], client: ClientText = 'key ada') {
  const bodies = await Promise.all(ids.map((id) => bodyOf(store, { id, client })));
  return bodies.filter((body) => body !== null);
}

async function questionsOf(store: ResponseStore, id: string) {
  const text = await store.readMessages({ id, client: 'key ada' }, after);
  return text?.filter(({ role }) => role === 'user').map((message) => message.text) ?? null;
}

interface Kind {
  /** Whether responses survive a restart. */
  readonly isDurable: boolean;
  /** Whether several hosts use the store, so that the store's clock counts. */
  readonly isShared?: boolean;
}

/** Tests the contract of all stores for responses. */
export function describeResponseStore(
  name: string,
  { isDurable, isShared = false }: Kind,
  place: () => Promise<StorePlaceForTests>,
): void {
  type Test = (responses: ResponseStore, next: () => Promise<ResponseStore>, store: FullStore) => Promise<void>;

  async function withStore(test: Test): Promise<void> {
    await using at = await place();
    let store = await at.open();
    const next = async () => {
      if (!isDurable) return store.responses;
      await store.close();
      store = await at.open();
      return store.responses;
    };
    try {
      await test(store.responses, next, store);
    } finally {
      await store.close();
    }
  }

  const inStore = (title: string, test: Test, run: typeof it | typeof it.skip = it) =>
    run(title, () => withStore(test));

  describe(`A store of responses (${name})`, () => {
    inStore('gives body and text back as they were, to their client alone', async (responses, next) => {
      const ownKey = { id: 'one', client: 'key ada' as const };
      const messages = [...turnOf(odd.repeat(30_000)), ...turnOf('')];
      expect(await responses.putResponse(nodeOf('one', null, { messages, body: odd.repeat(60_000) }), limits)).toBe(
        'stored',
      );
      const nextStore = await next();
      expect(await bodyOf(nextStore, ownKey)).toBe(odd.repeat(60_000));
      expect(await nextStore.readHead(ownKey, after)).toBe('head of one');
      expect(await nextStore.readMessages(ownKey, after)).toEqual(messages);
      const theirs = { ...ownKey, client: 'key bob' as const };
      expect([await bodyOf(nextStore, theirs), await nextStore.readMessages(theirs, after)]).toEqual([null, null]);
      expect(await nextStore.readHead(theirs, after)).toBe(null);
      expect(await nextStore.removeResponse(theirs)).toBe(false);
      expect(await nextStore.putResponse(nodeOf('two', 'one', { client: 'key bob' }), limits)).toBe('gone');
      expect(await nextStore.putResponse(nodeOf('two', 'none'), limits)).toBe('gone');
    });

    inStore('lets several responses follow one, and share its text', async (responses, next) => {
      await putChain(responses, ['a', 'b', 'c']);
      await responses.putResponse(nodeOf('d', 'a'), limits);
      const nextStore = await next();
      expect(await questionsOf(nextStore, 'c')).toEqual(['a', 'b', 'c']);
      expect(await questionsOf(nextStore, 'd')).toEqual(['a', 'd']);
      await nextStore.putResponse(nodeOf('e', 'c'), limits);
      expect(await questionsOf(await next(), 'e')).toEqual(['a', 'b', 'c', 'e']);
      expect(await questionsOf(await next(), 'a')).toEqual(['a']);
    });

    inStore('reads a text of many responses', async (responses) => {
      const ids = Array.from({ length: 100 }, (_, index) => `r${index}`);
      await putChain(responses, ids);
      expect(await questionsOf(responses, 'r99')).toEqual(ids);
    });

    inStore('keeps the messages of a removed one for those that follow it, and no longer', async (responses, next) => {
      await putChain(responses, ['a', 'b', 'c']);
      await responses.putResponse(nodeOf('d', 'a'), limits);
      for (const id of ['a', 'b']) expect(await responses.removeResponse({ id, client: 'key ada' })).toBe(true);
      const nextStore = await next();
      expect(await found(nextStore, ['a', 'b', 'c', 'd'])).toEqual(['c', 'd']);
      expect([await questionsOf(nextStore, 'b'), await questionsOf(nextStore, 'c')]).toEqual([null, ['a', 'b', 'c']]);
      expect(await nextStore.putResponse(nodeOf('e', 'a'), limits)).toBe('gone');
      expect(await nextStore.removeResponse({ id: 'a', client: 'key ada' })).toBe(false);
      await nextStore.removeResponse({ id: 'c', client: 'key ada' });
      await nextStore.expireResponses(after);
      expect(nextStore.counts.count).toBe(2); // a and d
      await nextStore.removeResponse({ id: 'd', client: 'key ada' });
      expect(nextStore.counts).toEqual({ count: 0, bytes: 0 });
    });

    inStore(
      'makes room by the least recently used one that none follows, of the client that has the most',
      async (responses, next) => {
        const few = { ...limits, maxResponses: 5 };
        await responses.putResponse(nodeOf('quiet', null, { client: 'key bob' }), few);
        await putChain(responses, ['a', 'b'], few);
        for (const id of ['c', 'd']) await responses.putResponse(nodeOf(id), few);
        const nextStore = await next();
        for (const id of ['e', 'f']) expect(await nextStore.putResponse(nodeOf(id), few)).toBe('stored');
        expect(await found(nextStore, ['a', 'b', 'c', 'd', 'e', 'f'])).toEqual(['c', 'd', 'e', 'f']);
        expect(await found(nextStore, ['quiet'], 'key bob')).toEqual(['quiet']);
        expect(nextStore.counts.count).toBe(5);
        await nextStore.readMessages({ id: 'c', client: 'key ada' }, after);
        await nextStore.putResponse(nodeOf('g'), few);
        expect(await found(nextStore, ['c', 'd', 'e', 'f', 'g'])).toEqual(['c', 'e', 'f', 'g']);
      },
    );

    inStore('makes room in bytes, by the responses of the client that has the most', async (responses) => {
      const small = { ...limits, maxBytes: 100_000 };
      const body = 'x'.repeat(20_000);
      await responses.putResponse(nodeOf('quiet', null, { client: 'key bob' }), small);
      for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await responses.putResponse(nodeOf(id, null, { body }), small);
      expect(await found(responses, ['a', 'b', 'c', 'd', 'e', 'f'])).toHaveLength(4);
      expect(await found(responses, ['quiet'], 'key bob')).toEqual(['quiet']);
      expect(responses.counts.bytes).toBeLessThanOrEqual(100_000);
    });

    inStore('takes none whose text alone is beyond the limits, and cuts no text', async (responses, next) => {
      const few = { ...limits, maxResponses: 3 };
      expect(await putChain(responses, ['a', 'b', 'c', 'd'], few)).toEqual(['stored', 'stored', 'stored', 'full']);
      const nextStore = await next();
      expect(await questionsOf(nextStore, 'c')).toEqual(['a', 'b', 'c']);
      expect(await found(nextStore, ['d'])).toEqual([]);
      expect(
        await nextStore.putResponse(nodeOf('e', null, { body: 'x'.repeat(1000) }), { ...few, maxBytes: 100 }),
      ).toBe('full');
    });

    inStore(
      'forgets a text once it was not continued for so long',
      async (responses, next) => {
        await putChain(responses, ['a', 'b']);
        await responses.putResponse(nodeOf('c', 'a', { createdAt: now + 1000 }), limits);
        await responses.putResponse(nodeOf('x'), limits);
        const nextStore = await next();
        const at = (id: string, time: number) => bodyOf(nextStore, { id, client: 'key ada' }, time - day);
        expect(await at('x', now + day - 1)).toBe('x');
        expect([await at('x', now + day), await at('b', now + day), await at('a', now + day)]).toEqual([
          null,
          null,
          'a',
        ]);
        await nextStore.expireResponses(now);
        expect(nextStore.counts.count).toBe(2);
        await nextStore.expireResponses(now + 1000);
        expect(nextStore.counts).toEqual({ count: 0, bytes: 0 });
      },
      isShared ? it.skip : it,
    );

    inStore(
      'forgets a text once it was not continued for so long, by its own clock',
      async (responses) => {
        const short = { ...limits, ttlMs: 400 };
        await putChain(responses, ['a', 'b', 'x'], short);
        await delay(systemClock, 300);
        await responses.putResponse(nodeOf('c', 'a'), short);
        await delay(systemClock, 200);
        expect(await found(responses, ['a', 'b', 'c', 'x'])).toEqual(['a', 'c']);
        await responses.putResponse(nodeOf('y'), short);
        expect(responses.counts.count).toBe(3);
      },
      isShared ? it : it.skip,
    );

    inStore(
      'is whole where responses were removed, evicted and continued',
      async (responses, _, store) => {
        const few = { ...limits, maxResponses: 4 };
        await putChain(responses, ['a', 'b', 'c'], few);
        await responses.removeResponse({ id: 'a', client: 'key ada' });
        for (const id of ['d', 'e']) await responses.putResponse(nodeOf(id), few);
        const { faults, rows, expired } = await store.upkeep.verify({ conversationTtlMs: 0, jobTtlMs: 0 });
        expect(faults.filter((fault) => fault.includes('response'))).toEqual([]);
        expect(rows.responses).toBe(4);
        expect(expired.responses).toBe(isShared ? 0 : 3); // a lives as long as b
      },
      isDurable ? it : it.skip,
    );

    inStore('forgets a client', async (responses, _, store) => {
      await putChain(responses, ['a', 'b']);
      await responses.putResponse(nodeOf('other', null, { client: 'key bob' }), limits);
      expect(await store.upkeep.purge('key ada')).toMatchObject({ responses: 2 });
      expect(await found(responses, ['a', 'b'])).toEqual([]);
      expect(await found(responses, ['other'], 'key bob')).toEqual(['other']);
      await responses.expireResponses(after);
      expect(responses.counts.count).toBe(1);
    });
  });
}
