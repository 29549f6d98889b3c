import { StoreHarness, ttlMs } from '../../../support/stores/conversations.js';

/** Returns all pages as IDs. Calls `meanwhile` after each. */
function pagesOf({ store }: StoreHarness, limit: number, meanwhile: (page: number) => void = () => {}): string[][] {
  const pages: string[][] = [];
  for (let before: number | null = null; ; ) {
    const { conversations, next } = store.listConversations('key alice', before, limit);
    pages.push(conversations.map(({ id }) => id));
    meanwhile(pages.length);
    if (next === null) return pages;
    before = next;
  }
}

describe('The list of conversations', () => {
  it('contains only those of its client, the most recently active first', async () => {
    const harness = new StoreHarness();
    const [first, second] = [harness.chat(), harness.chat()];
    harness.chat(null, 'key bob');
    await harness.clock.advance(10);
    harness.chat(first);
    const { conversations, next } = harness.store.listConversations('key alice', null, 50);
    expect(conversations.map(({ id }) => id)).toEqual([first, second]);
    expect(conversations[0]).toMatchObject({ ...harness.store.snapshot(first, 'key alice'), title: 'Hi' });
    expect(next).toBeNull();
    expect(harness.store.listConversations('key carol', null, 50)).toEqual({ conversations: [], next: null });
  });

  it('has no further page after a full last one', () => {
    const harness = new StoreHarness();
    for (let count = 0; count < 4; count++) harness.chat();
    expect(pagesOf(harness, 2).map((page) => page.length)).toEqual([2, 2]);
  });

  it('omits no unchanged conversation, whatever else changes, is deleted or created between its pages', () => {
    const harness = new StoreHarness({ maxConversations: 10_000 });
    const ids = Array.from({ length: 900 }, () => harness.chat()).reverse();
    const [moved, deleted] = [ids.filter((_, at) => at % 7 === 0), ids.filter((_, at) => at % 5 === 1 && at % 7 !== 0)];
    const pages = pagesOf(harness, 30, (page) => {
      for (const id of moved.slice(page * 5, page * 5 + 5)) harness.chat(id);
      for (const id of deleted.slice(page * 5, page * 5 + 5)) harness.store.removeConversation(id, 'key alice');
      harness.chat();
    });
    const shown = pages.flat();
    const unchanged = ids.filter((id) => !moved.includes(id) && !deleted.includes(id));
    expect(shown.filter((id) => unchanged.includes(id))).toEqual(unchanged);
    expect(new Set(shown).size).toBe(shown.length);
  });

  it.each([
    [0, 0],
    [1, 0],
    [1_000_000_000_000, 2],
  ])('accepts a position that was never used: %d', (before, count) => {
    const harness = new StoreHarness();
    const ids = [harness.chat(), harness.chat()];
    const expected = ids.reverse().slice(0, count);
    expect(harness.store.listConversations('key alice', before, 50).conversations.map(({ id }) => id)).toEqual(
      expected,
    );
  });

  it('contains no expired conversation, unless it is in use', async () => {
    const harness = new StoreHarness();
    const [busy] = [harness.chat(), harness.chat()];
    using _turn = harness.open(busy ?? null);
    const { next } = harness.store.listConversations('key alice', null, 1);
    await harness.clock.advance(ttlMs);
    const young = harness.chat();
    expect(harness.store.listConversations('key alice', null, 50).conversations.map(({ id }) => id)).toEqual([
      young,
      busy,
    ]);
    expect(harness.store.listConversations('key alice', next, 50).conversations.map(({ id }) => id)).toEqual([busy]);
  });
});

describe('The title of a conversation', () => {
  const titleAfter = (message: string) => {
    const harness = new StoreHarness();
    harness.chat(null, 'key alice', message);
    return harness.store.listConversations('key alice', null, 1).conversations[0]?.title;
  };

  it.each([
    ['short', 'Hello, my name is Ada', 'Hello, my name is Ada'],
    ['long', 'a'.repeat(5000), 'a'.repeat(80)],
    ['of two UTF-16 units a character', '😀'.repeat(3000), '😀'.repeat(80)],
    ['of one, two, three and four bytes a character', 'aé…😀'.repeat(50), 'aé…😀'.repeat(20)],
    ['of several lines', 'one\r\ntwo\u2028three\u0085\u001b[31m', 'one  two three  [31m'],
    ['cut before a pair', `${'a'.repeat(79)}😀b`, `${'a'.repeat(79)}😀`],
  ])('is the start of its first message in one line: %s', (_kind, message, title) => {
    expect(titleAfter(message)).toBe(title);
  });
});
