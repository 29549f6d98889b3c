import { consoleParts } from '../../support/clients/console-parts.js';
import { assistant, user } from '../../support/doors/sdk-messages.js';

interface Turn {
  readonly id: number;
  readonly question: { readonly text: string; readonly images: readonly object[] };
  readonly state: { readonly value: { readonly kind: string } };
  readonly text: { readonly value: string };
}

interface Memory {
  forget(): void;
  recall(name: string): unknown;
}

interface Parts {
  readonly TabMemory: new (storage: TabStorage) => Memory;
  readonly ChatTurn: new (id: number, asked: object, state: object, text?: string) => Turn;
  turnsOf(said: object, nextId: () => number): readonly Turn[];
  rememberTurns(memory: Memory, conversationId: string | null, turns: readonly Turn[]): void;
  withRemembered(memory: Memory, id: string | null, kept: readonly Turn[], nextId: () => number): readonly Turn[];
}

const parts = consoleParts<Parts>('base/tab-memory.mjs', 'ask/turn.mjs');

/** Storage of a tab with room for this many characters. */
class TabStorage {
  readonly items = new Map<string, string>();
  readonly #room: number;

  constructor(room = Number.POSITIVE_INFINITY) {
    this.#room = room;
  }

  getItem(name: string): string | null {
    return this.items.get(name) ?? null;
  }

  setItem(name: string, value: string): void {
    if (value.length > this.#room) throw new Error('QuotaExceededError');
    this.items.set(name, value);
  }

  removeItem(name: string): void {
    this.items.delete(name);
  }
}

const done = { kind: 'done', result: { model: null, usage: null } };
const running = { kind: 'running', sinceMs: 0 };
const stopped = { kind: 'stopped' };

async function tab(room?: number) {
  const all = await parts;
  const storage = new TabStorage(room);
  const memory = new all.TabMemory(storage);
  const turn = (text: string, state: object, answer = '', images: readonly object[] = []) =>
    new all.ChatTurn(1, { text, images }, state, answer);
  const remember = (id: string | null, ...turns: readonly Turn[]) => all.rememberTurns(memory, id, turns);
  let lastId = 100;
  const reloaded = (id: string | null, kept: readonly Turn[]) =>
    all
      .withRemembered(memory, id, kept, () => ++lastId)
      .map(({ question, state, text }) => [question.text, state.value.kind, text.value]);
  return { storage, memory, turn, remember, reloaded };
}

let { storage, memory, turn, remember, reloaded } = {} as Awaited<ReturnType<typeof tab>>;
beforeEach(async () => {
  ({ storage, memory, turn, remember, reloaded } = await tab());
});

describe('After a reload', () => {
  it('a question is in its position, with the received part of its answer', async () => {
    const [one, two] = [turn('one', done, '1'), turn('two', done, '2')];
    remember('a', one, turn('left', stopped, 'le'), two, turn('open', running, 'op'));
    expect(reloaded('a', [one, two])).toEqual([
      ['one', 'done', '1'],
      ['left', 'unfinished', 'le'],
      ['two', 'done', '2'],
      ['open', 'unfinished', 'op'],
    ]);
  });

  it('a first question is shown, though it has no conversation yet', async () => {
    remember(null, turn('first', running, 'an'));
    expect(reloaded(null, [])).toEqual([['first', 'unfinished', 'an']]);
  });

  it('no turn of another conversation is shown', async () => {
    remember('a', turn('left', stopped));
    expect([reloaded('b', []), reloaded(null, [])]).toEqual([[], []]);
  });

  it('a turn that the service did store is shown once, and a stopped one that was sent again twice', async () => {
    const kept = turn('one', done, '1');
    remember('a', turn('one', running, 'o'));
    expect(reloaded('a', [kept])).toEqual([['one', 'done', '1']]);
    remember('a', turn('one', stopped, 'o'), kept);
    expect(reloaded('a', [kept])).toEqual([
      ['one', 'unfinished', 'o'],
      ['one', 'done', '1'],
    ]);
  });

  it('only unsaved turns are shown if the conversation cannot be read', async () => {
    remember('a', turn('one', done, '1'), turn('left', stopped, 'le'));
    expect(reloaded('a', [])).toEqual([['left', 'unfinished', 'le']]);
  });
});

describe('The memory of a tab', () => {
  it('is empty once every turn is stored', async () => {
    remember('a', turn('left', stopped));
    expect(storage.items.size).toBe(1);
    remember('a', turn('one', done));
    expect(storage.items.size).toBe(0);
  });

  it('omits images if there is not enough space for them, and everything if there is none for the text', async () => {
    const image = { name: 'a.png', mediaType: 'image/png', data: 'A'.repeat(5000) };
    const small = await tab(1000);
    small.remember('a', small.turn('left', stopped, 'le', [image]));
    expect(small.reloaded('a', [])).toEqual([['left', 'unfinished', 'le']]);
    const full = await tab(10);
    full.remember('a', full.turn('left', stopped, 'le'));
    expect(full.reloaded('a', [])).toEqual([]);
  });

  it('ignores unreadable data', async () => {
    storage.setItem('prompt-relay-turns-1', '{"conversationId":');
    expect(reloaded('a', [])).toEqual([]);
  });

  it('is deleted with its key, and stores nothing afterwards', async () => {
    remember('a', turn('left', stopped));
    memory.forget();
    remember('a', turn('left', stopped));
    expect([storage.items.size, memory.recall('turns-1')]).toEqual([0, null]);
  });

  it('has model and tokens of an answer from the service, if they are stored', async () => {
    const usage = { input_tokens: 1, output_tokens: 2 };
    const messages = [user('one'), assistant('1'), user('two'), assistant('2', { model: 'eliza', usage })];
    const { turnsOf } = await parts;
    expect(turnsOf({ messages }, () => 1).map(({ state }) => state.value)).toEqual([
      { kind: 'done', result: { model: null, usage: null } },
      { kind: 'done', result: { model: 'eliza', usage } },
    ]);
  });

  it('contains the last twenty conversations only', async () => {
    for (let number = 1; number <= 21; number++) remember(`${number}`, turn('left', stopped));
    expect([reloaded('1', []), reloaded('2', [])]).toEqual([[], [['left', 'unfinished', '']]]);
  });
});
