import { JournaledConversations } from '../../../../src/primary/conversations/journaled-conversations.js';
import type { ConversationChange } from '../../../../src/primary/store/contract/conversations.js';
import { noJournal } from '../../../../src/primary/store/memory-store.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { StoreHarness, ttlMs } from '../../../support/stores/conversations.js';

/** Creates conversations whose journal records its calls, and fails on demand. */
function createKept(limits = {}) {
  const harness = new StoreHarness(limits);
  const asked: unknown[] = [];
  const record = async (what: unknown) => {
    if (journal.isBroken) throw storeUnavailable();
    asked.push(what);
  };
  const journal = {
    ...noJournal,
    asked,
    isBroken: false,
    commitChange: (change: ConversationChange) =>
      record(change.type === 'title' ? change : [change.type, change.messageCount]),
    removeConversation: (id: string) => record(['remove', id]),
  };
  return { harness, journal, kept: new JournaledConversations(harness.store, journal, harness.clock) };
}

describe('A journaled conversation', () => {
  it('is removed from the journal, then from memory', async () => {
    const { harness, journal, kept } = createKept();
    const id = harness.chat();
    const removed = kept.removeConversation(id, 'key alice');
    expect(harness.has(id)).toBe(true);
    await removed;
    expect(harness.has(id)).toBe(false);
    expect(journal.asked).toEqual([['remove', id]]);
  });

  it('is removed only once for simultaneous requests', async () => {
    const { harness, kept } = createKept();
    const id = harness.chat();
    const both = await Promise.allSettled([
      kept.removeConversation(id, 'key alice'),
      kept.removeConversation(id, 'key alice'),
    ]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(harness.removed).toEqual(['deleted']);
  });

  it('cannot be removed by other clients', async () => {
    const { harness, journal, kept } = createKept();
    const id = harness.chat();
    await expect(kept.removeConversation(id, 'key bob')).rejects.toMatchObject({ code: 'not_found' });
    expect(journal.asked).toEqual([]);
  });

  it('is unchanged if the journal fails', async () => {
    const { harness, journal, kept } = createKept();
    const id = harness.chat();
    journal.isBroken = true;
    await expect(kept.removeConversation(id, 'key alice')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(kept.fork(id, 'key alice', null)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(harness.store.counts).toMatchObject({ conversations: 1, created: 1 });
    expect(harness.store.listConversations('key alice', null, 10).conversations.map((each) => each.id)).toEqual([id]);
  });

  it('is forked in the journal, then in memory', async () => {
    const { harness, journal, kept } = createKept();
    const id = harness.chat(harness.chat());
    const fork = await kept.fork(id, 'key alice', 2);
    expect(journal.asked).toEqual([['fork', 2]]);
    expect(fork.messageCount).toBe(2);
    expect(harness.store.counts.conversations).toBe(2);
  });
});

describe('A title', () => {
  it('changes in the journal, then in memory, replacing the earlier title', async () => {
    const { harness, journal, kept } = createKept();
    const id = harness.chat(null, 'key alice', 'First words');
    expect(harness.store.snapshot(id, 'key alice').title).toBe('First words');
    const both = await Promise.all([kept.rename(id, 'key alice', 'One'), kept.rename(id, 'key alice', 'Two')]);
    expect(both.map(({ title }) => title)).toEqual(['One', 'Two']);
    expect((await kept.rename(id, 'key alice', null)).title).toBe('First words');
    expect(journal.asked).toEqual([
      { type: 'title', id, title: 'One', previous: null },
      { type: 'title', id, title: 'Two', previous: 'One' },
      { type: 'title', id, title: null, previous: 'Two' },
    ]);
  });

  it('cannot be changed by other clients, and is unchanged if the journal fails', async () => {
    const { harness, journal, kept } = createKept();
    const id = harness.chat(null, 'key alice', 'First words');
    await expect(kept.rename(id, 'key bob', 'Mine')).rejects.toMatchObject({ code: 'not_found' });
    journal.isBroken = true;
    await expect(kept.rename(id, 'key alice', 'Lost')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(harness.store.snapshot(id, 'key alice').title).toBe('First words');
    expect(journal.asked).toEqual([]);
  });

  it('does not count as activity when it changes', async () => {
    const { harness, kept } = createKept();
    const first = harness.chat();
    const second = harness.chat();
    const before = harness.store.snapshot(first, 'key alice');
    await harness.clock.advance(10);
    await kept.rename(first, 'key alice', 'Named');
    expect(harness.store.listConversations('key alice', null, 10).conversations.map(({ id }) => id)).toEqual([
      second,
      first,
    ]);
    expect(harness.store.snapshot(first, 'key alice')).toEqual({ ...before, title: 'Named' });
  });
});

it('Simultaneous forks are written one after the other, each within the limits before the next', async () => {
  const { harness, journal, kept } = createKept({ maxConversations: 3 });
  const id = harness.chat();
  const counts: number[] = [];
  let open = 0;
  journal.commitChange = async () => {
    counts.push(++open);
    await new Promise(setImmediate);
    open--;
  };
  const forks = Array.from({ length: 3 }, () => kept.fork(id, 'key alice', null));
  const refused = kept.fork(id, 'key bob', null);
  await expect(refused).rejects.toMatchObject({ code: 'not_found' });
  await Promise.all(forks);
  expect(counts).toEqual([1, 1, 1]);
  expect(harness.store.counts.conversations).toBe(3);
});

describe('A restored conversation', () => {
  const turns = [{ texts: ['Hi', 'Hello'] as const, images: [], figures: null, totalTokens: 3 }];

  async function restored(agesMs: readonly number[], limits = {}) {
    const { harness, journal } = createKept(limits);
    const now = harness.clock.now();
    const restore = async function* () {
      for (const [index, ageMs] of agesMs.entries()) {
        const times = { createdAt: now - ageMs, lastActivityAt: now - ageMs };
        yield { id: `${index}`, client: 'key alice' as const, system: null, ...times, turns };
      }
    };
    const kept = new JournaledConversations(
      harness.store,
      Object.assign(journal, { restoreConversations: restore }),
      harness.clock,
    );
    return { harness, count: await kept.restoreConversations() };
  }

  it('has its texts, tokens and times, and is not counted as created', async () => {
    const { harness, count } = await restored([500]);
    expect(count).toBe(1);
    expect(harness.store.counts).toEqual({ conversations: 1, bytes: 7, tokens: 3, created: 0 });
    expect(harness.open('0').history.map(({ text }) => text)).toEqual(['Hi', 'Hello']);
  });

  it('expires by the time that has passed while the service was down', async () => {
    const { harness } = await restored([ttlMs - 10, 100]);
    await harness.clock.advance(20);
    harness.store.expireConversations();
    expect(harness.removedIds).toEqual(['0']);
  });

  it('retains its order, even if a clock was set back meanwhile', async () => {
    const { harness } = await restored([-5000, 800, 100]);
    expect(harness.store.listConversations('key alice', null, 9).conversations.map(({ id }) => id)).toEqual([
      '2',
      '1',
      '0',
    ]);
    await harness.clock.advance(ttlMs);
    harness.store.expireConversations();
    expect(harness.removedIds).toEqual(['0', '1', '2']);
  });

  it('counts towards the limits: the least recently active one is evicted', async () => {
    const { harness, count } = await restored([300, 200, 100], { maxConversations: 2 });
    expect(count).toBe(2);
    expect(harness.removed).toEqual(['evicted']);
    expect(harness.removedIds).toEqual(['0']);
  });
});
