import { ConversationSearch } from '../../../../src/features/read-back/conversation-search.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { StoreHarness } from '../../../support/stores/conversations.js';

/** Searches the conversations of a store. */
function searchIn({ store }: StoreHarness, clock = new FakeClock(), yieldInOrder = async () => {}) {
  const searching = new ConversationSearch(store, clock, yieldInOrder);
  return async (
    search: string | null,
    {
      client = 'key alice' as ClientText,
      limit = 10,
      before = null as number | null,
      versionOf = null as string | null,
    } = {},
    caller = new AbortController().signal,
  ) => searching.page({ client, before, limit, search, versionOf }, caller);
}

/** Stores one conversation with these messages of its client; each has the answer `Hello`. Returns the ID. */
function talk(harness: StoreHarness, ...messages: readonly string[]): string {
  let id: string | null = null;
  for (const message of messages) id = harness.chat(id, 'key alice', message);
  return id ?? '';
}

describe('A search in conversations', () => {
  it('finds titles with the given words, ignoring case, page by page', async () => {
    const harness = new StoreHarness();
    const ids = ['Bread', 'Butter', 'No bread', 'Jam', 'BREAD'].map((said) => talk(harness, said));
    harness.store.rename(ids[3] as string, 'key alice', 'A bread with jam');
    const find = searchIn(harness);
    const first = await find('bread', { limit: 2 });
    expect(first.conversations.map(({ title }) => title)).toEqual(['BREAD', 'A bread with jam']);
    const second = await find('bread', { limit: 2, before: first.next });
    expect(second).toMatchObject({ conversations: [{ title: 'No bread' }, { title: 'Bread' }], next: null });
    expect(await find('bread', { client: 'key bob' })).toEqual({ conversations: [], next: null });
    expect(await find('.*')).toEqual({ conversations: [], next: null });
  });

  it('finds words of different messages and of the title in any order', async () => {
    const harness = new StoreHarness();
    const id = talk(harness, 'How do I bake bread?', 'And with an oven of stone?');
    talk(harness, 'How do I bake a cake?');
    const find = searchIn(harness);
    for (const words of ['stone bread', '  BREAD\tstone bread ', 'hello oven bake', 'one?']) {
      expect((await find(words)).conversations.map((each) => each.id)).toEqual([id]);
    }
    expect((await find('stone cake')).conversations).toEqual([]);
  });

  it('names the message with most of the words that the title lacks, and shows them', async () => {
    const harness = new StoreHarness();
    talk(
      harness,
      'About bread',
      `${'The first lines. '.repeat(9)}\n\nStone ovens\nbake bread. ${'More lines. '.repeat(99)}`,
    );
    const find = searchIn(harness);
    const { conversations } = await find('bread stone');
    expect(conversations.map(({ match }) => match)).toEqual([
      {
        message: 2,
        text: `… The first lines. The first lines. Stone ovens bake bread. ${'More lines. '.repeat(8)}More …`,
      },
    ]);
    const other = talk(harness, 'About cakes', 'Flour', 'Flour and sugar', 'Sugar');
    expect((await find('cakes sugar flour')).conversations).toMatchObject([
      { id: other, match: { message: 4, text: 'Flour and sugar' } },
    ]);
    expect((await find('about BREAD')).conversations[0]?.match).toEqual({ message: null, text: 'About bread' });
    expect((await find(null)).conversations[0]?.match).toBeUndefined();
  });

  it.each([
    ['at the end of a long text', `${'ä'.repeat(100_000)} needle`, 'needle'],
    ['across the end of a slice', `${'x'.repeat(16 * 1024 - 3)}needle`, 'needle'],
    ['between characters whose case has another length', `${'İ'.repeat(3000)} needle ${'İ'.repeat(3000)}`, 'needle'],
    ['in another alphabet', 'Где мой ХЛЕБ?', 'хлеб'],
    ['as a part of a word', 'A haystack of needles', 'needle'],
    ['as characters of two UTF-16 units', `${'🚀'.repeat(5000)}🍞`, '🍞'],
  ])('finds a word %s', async (_place, message, word) => {
    const harness = new StoreHarness({ maxBytes: 1_000_000, maxBytesEach: 1_000_000 });
    talk(harness, 'Hi', message);
    const { conversations } = await searchIn(harness)(word);
    expect(conversations[0]?.match).toMatchObject({ message: 2, text: expect.stringMatching(new RegExp(word, 'i')) });
    expect(conversations[0]?.match?.text.length).toBeLessThan(200);
  });

  it('reads a thousand conversations for a page, and continues after them', async () => {
    const harness = new StoreHarness({ maxConversations: 10_000 });
    talk(harness, 'needle');
    for (let count = 0; count < 1500; count++) talk(harness, 'hay');
    const find = searchIn(harness);
    const first = await find('needle');
    expect(first).toEqual({ conversations: [], next: expect.any(Number) });
    expect(await find('needle', { before: first.next })).toMatchObject({
      conversations: [{ title: 'needle' }],
      next: null,
    });
  });

  it('reads 8 MB for a page, in slices between which other calls have their turn', async () => {
    const harness = new StoreHarness({ maxBytes: 100_000_000, maxBytesEach: 8_000_000 });
    talk(harness, 'needle');
    for (let count = 0; count < 5; count++) talk(harness, 'hay', 'x'.repeat(3_000_000));
    let turns = 0;
    const find = searchIn(harness, harness.clock, async () => void turns++);
    const first = await find('needle');
    expect(first).toEqual({ conversations: [], next: expect.any(Number) });
    expect(turns).toBeGreaterThan(9_000_000 / 65_536 - 1);
    expect((await find('needle', { before: first.next })).conversations).toHaveLength(1);
  });

  it('ends a page after a second, with at least one conversation, and the next one has the rest', async () => {
    const harness = new StoreHarness({ maxBytes: 100_000_000, maxBytesEach: 8_000_000 });
    talk(harness, 'needle');
    for (let count = 0; count < 2; count++) talk(harness, 'hay', 'x'.repeat(100_000));
    const clock = new FakeClock();
    const find = searchIn(harness, clock, () => clock.advance(1000));
    const pages: number[] = [];
    for (let before: number | null = null; ; ) {
      const { conversations, next } = await find('needle', { before });
      pages.push(conversations.length);
      if (next === null) break;
      before = next;
    }
    expect(pages).toEqual([0, 0, 1]);
  });

  it('gives other calls more turns if it has more words to search', async () => {
    const harness = new StoreHarness({ maxBytes: 100_000_000, maxBytesEach: 8_000_000 });
    talk(harness, 'hay', 'x'.repeat(1_000_000));
    const turnsOf = async (search: string) => {
      let turns = 0;
      await searchIn(harness, harness.clock, async () => void turns++)(search);
      return turns;
    };
    const [one, ten] = [await turnsOf('0'), await turnsOf('0 1 2 3 4 5 6 7 8 9')];
    expect(ten).toBeGreaterThan(3 * one);
  });

  it('ends when its caller disconnects, also while it waits for an earlier one', async () => {
    const harness = new StoreHarness({ maxBytes: 100_000_000, maxBytesEach: 8_000_000 });
    talk(harness, 'hay', 'x'.repeat(1_000_000));
    const [first, second] = [new AbortController(), new AbortController()];
    let turns = 0;
    const find = searchIn(harness, harness.clock, async () => {
      turns++;
      for (const controller of [first, second]) controller.abort(new Error('the client has disconnected'));
    });
    const searches = [first, second].map(({ signal }) => find('needle', {}, signal));
    for (const search of searches) await expect(search).rejects.toThrow('the client has disconnected');
    expect(turns).toBe(1);
  });

  it('reads one list of versions for a page', async () => {
    const harness = new StoreHarness({ maxConversations: 10_000 });
    const id = talk(harness, 'needle');
    for (let count = 0; count < 2500; count++) talk(harness, 'hay');
    let lists = 0;
    const { store } = harness;
    const counted = {
      listConversations: (...order: Parameters<typeof store.listConversations>) => {
        lists++;
        return store.listConversations(...order);
      },
      texts: (...of: Parameters<typeof store.texts>) => store.texts(...of),
    };
    const find = searchIn({ store: counted } as unknown as StoreHarness);
    const first = await find('needle', { versionOf: id });
    expect([first, lists]).toEqual([{ conversations: [], next: expect.any(Number) }, 1]);
  });

  it('makes the searches of one client one after the other, and those of two clients together', async () => {
    const harness = new StoreHarness({ maxBytes: 100_000_000, maxBytesEach: 8_000_000 });
    for (const client of ['key alice', 'key bob'] as const)
      harness.chat(harness.chat(null, client), client, 'x'.repeat(100_000));
    const open: (() => void)[] = [];
    const find = searchIn(harness, harness.clock, () => new Promise((resolve) => void open.push(resolve)));
    const ended: string[] = [];
    const searches = ['alice', 'alice', 'bob'].map(async (name, index) => {
      await find('needle', { client: `key ${name}` });
      ended.push(`${name} ${index}`);
    });
    await harness.clock.advance(1);
    expect(open).toHaveLength(2);
    for (const proceed of open.splice(0)) proceed();
    await harness.clock.advance(1);
    expect([ended.toSorted(), open.length]).toEqual([['alice 0', 'bob 2'], 1]);
    for (const proceed of open) proceed();
    await Promise.all(searches);
  });
});
