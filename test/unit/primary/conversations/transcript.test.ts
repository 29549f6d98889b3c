import { stored } from '../../../../src/primary/store/contract/stored-text.js';
import type { TranscriptItem, TranscriptPart, TranscriptPlace } from '../../../../src/shared/ipc/protocol.js';
import type { Image } from '../../../../src/shared/job.js';
import { failureOf, StoreHarness } from '../../../support/stores/conversations.js';

const pieceBytes = 16 * 1024;

/** Returns a text of characters of one to four bytes, so that pieces can end inside a character. */
const mixed = (length: number) => 'aé…😀'.repeat(Math.ceil(length / 10));

function begun(harness: StoreHarness, user: string, assistant = 'Hello', images: readonly Image[] = []): string {
  using turn = harness.store.turn(null, 'key alice', 'Be kind.', user.length);
  turn.openTurn();
  return turn.commit(user, assistant, 1, images).id;
}

const large = { maxBytes: 100_000_000, maxBytesEach: 100_000_000 };

/** Yields all pieces of a conversation, in order. */
function* piecesOf({ store }: StoreHarness, id: string, withImages = true) {
  let from: TranscriptPlace | null = null;
  do {
    const { parts, next }: TranscriptItem = store.readTranscript({ id, client: 'key alice', withImages, from });
    yield parts;
    from = next;
  } while (from !== null);
}

/** Joins pieces to messages with their whole texts and images. */
function joined(items: Iterable<readonly TranscriptPart[]>): string[] {
  const told: string[] = [];
  for (const part of [...items].flat()) {
    if (part.type === 'message') told.push(`${part.role}: `);
    else if (part.type === 'image') told.push(`${part.mediaType} of ${part.bytes}: `);
    else if (part.type === 'document') told.push(`${part.name} of ${part.bytes}: `);
    else told.push(`${told.pop()}${part.type === 'text' ? part.text : part.data}`);
  }
  return told;
}

describe('The transcript of a conversation', () => {
  it('contains everything from the system text to the last answer', () => {
    const harness = new StoreHarness();
    const id = begun(harness, 'one');
    harness.chat(id, 'key alice', 'two');
    const told = joined(piecesOf(harness, id));
    expect(told).toEqual(['system: Be kind.', 'user: one', 'assistant: Hello', 'user: two', 'assistant: Hello']);
  });

  it('is sent in pieces that fit into messages of the channel, without split characters', () => {
    const harness = new StoreHarness(large);
    const [user, assistant] = [mixed(1_000_000), mixed(200_003)];
    const items = [...piecesOf(harness, begun(harness, user, assistant))];
    expect(joined(items)).toEqual(['system: Be kind.', `user: ${user}`, `assistant: ${assistant}`]);
    const lengths = items.map((parts) => JSON.stringify(parts).length);
    expect(Math.max(...lengths)).toBeLessThan(2 * pieceBytes + 1000);
    for (const part of items.flat()) if (part.type === 'text') expect(part.text).not.toContain('\ufffd');
  });

  it('is sent in pieces also if its answers have long messages that were added to them', () => {
    const harness = new StoreHarness(large);
    const usage = { inputTokens: null, outputTokens: null, costUsd: null };
    const figures = stored(JSON.stringify({ model: null, usage, additions: [{ at: 0, text: mixed(20_000) }] }));
    const id = begun(harness, 'one');
    for (let turn = 0; turn < 20; turn++) {
      using later = harness.open(id);
      later.commit('two', 'zwei', 1, [], figures);
    }
    const lengths = [...piecesOf(harness, id)].map((parts) => JSON.stringify(parts).length);
    expect(Math.max(...lengths)).toBeLessThan(45_000);
  });

  it('is sent in few items, even for many messages', () => {
    const harness = new StoreHarness(large);
    const id = begun(harness, 'begin');
    for (let turn = 1; turn < 1000; turn++) harness.chat(id, 'key alice', `message ${turn}`);
    const items = [...piecesOf(harness, id)];
    expect(joined(items)).toHaveLength(2001);
    expect(items.length).toBeLessThan(40);
  });

  it('contains the images of a message, or only their types and sizes', () => {
    const harness = new StoreHarness(large);
    const data = 'QUJD'.repeat(10_000);
    const images: Image[] = [
      { mediaType: 'image/png', data, at: 0 },
      { mediaType: 'image/webp', data: 'QQ==', at: 0 },
    ];
    const id = begun(harness, 'look', 'seen', images);
    const whole = [
      'system: Be kind.',
      'user: look',
      `image/png of 30000: ${data}`,
      'image/webp of 1: QQ==',
      'assistant: seen',
    ];
    expect(joined(piecesOf(harness, id))).toEqual(whole);
    const named = [...whole.slice(0, 2), 'image/png of 30000: ', 'image/webp of 1: ', 'assistant: seen'];
    expect(joined(piecesOf(harness, id, false))).toEqual(named);
  });

  it('excludes a turn that is still running', () => {
    const harness = new StoreHarness();
    const id = begun(harness, 'one');
    using turn = harness.open(id);
    expect(joined(piecesOf(harness, id))).toHaveLength(3);
    turn.commit('two', 'zwei', 1);
  });

  it('does not grow while it is read', () => {
    const harness = new StoreHarness(large);
    const id = begun(harness, mixed(100_000));
    const reading = piecesOf(harness, id);
    const items = [reading.next().value ?? []];
    harness.chat(id);
    for (const item of reading) items.push(item);
    expect(joined(items)).toHaveLength(3);
  });

  it('stops when the conversation is removed', () => {
    const harness = new StoreHarness(large);
    const id = begun(harness, mixed(100_000));
    const reading = piecesOf(harness, id);
    reading.next();
    harness.store.removeConversation(id, 'key alice');
    expect(failureOf(() => reading.next())).toMatchObject({ code: 'not_found' });
    expect(reading.next().done).toBe(true);
  });

  it('is not available to other clients', () => {
    const harness = new StoreHarness();
    const id = begun(harness, 'mine');
    const failures = [id, 'A'.repeat(24)].map((asked) =>
      failureOf(() => harness.store.readTranscript({ id: asked, client: 'key bob', withImages: true, from: null })),
    );
    expect(failures).toEqual(
      failures.map(() => expect.objectContaining({ code: 'not_found', message: 'no such conversation' })),
    );
  });
});
