import { orAborted, withResolvers } from '../../../src/shared/async.js';
import { FakeClock } from '../../support/basics/fake-clock.js';
import { settled } from '../../support/basics/settled.js';
import { consoleParts } from '../../support/clients/console-parts.js';

interface Turn {
  readonly question: { readonly text: string };
  readonly thoughts: { readonly value: string };
  readonly state: { readonly value: { readonly kind: string } };
  readonly text: { readonly value: string };
}

interface Chat {
  readonly view: {
    readonly value: {
      readonly turns: readonly Turn[];
      readonly conversationId: string | null;
      readonly local: string | null;
      readonly isInPlace: boolean;
      readonly found: { readonly message: number } | null;
      readonly state: unknown;
    };
  };
  lookElsewhere(): Promise<void>;
  ask(message: object): Promise<void>;
  askInstead(turn: Turn, message: object): Promise<void>;
  read(conversationId: string, foundMessage?: number): Promise<void>;
  openVersion(conversationId: string, shared: number): Promise<void>;
  reset(): void;
  stop(): void;
  readonly isBusy: { readonly value: boolean };
  readonly talks: { readonly value: readonly object[] };
  recall(local: string): Promise<void>;
}

interface Parts {
  readonly Chat: new (api: object, clock: object, memory: object) => Chat;
  readonly ApiError: new (status: number, body: object) => Error;
  readonly TabMemory: new (storage: object) => object;
}

const parts = consoleParts<Parts>('base/tab-memory.mjs', 'base/failures.mjs', 'ask/chat.mjs');

const echoed = (content: string) => ['user', 'assistant'].map((role) => ({ role, content }));
const message = (text: string) => ({ text, images: [], system: '', model: null, effort: null, schema: null });

/** Starts a chat whose service echoes each message, after these refusals. */
async function begin(refusals: readonly object[] = []) {
  const { Chat, ApiError, TabMemory } = await parts;
  const clock = new FakeClock();
  const asked: object[] = [];
  const left = [...refusals];
  const removed: string[] = [];
  const { promise: released, resolve: release } = withResolvers();
  const said = new Map<string, object[]>([['b', []]]);
  const jobs = new Map<string, { readonly message: string }>();
  /** Turns that other pages and programs have begun, by conversation. */
  const open = new Map<string, object>();
  const looks: string[] = [];
  const api = {
    async *events(path: string, { body: plain, signal }: { body?: { message: string }; signal: AbortSignal }) {
      const body = plain ?? jobs.get(path.split('/')[2] ?? '') ?? { message: '' };
      if (plain !== undefined) asked.push(plain);
      signal.throwIfAborted();
      const refusal = left.shift();
      if (refusal !== undefined) throw new ApiError(429, refusal);
      if (body.message.startsWith('slow')) await orAborted(released, signal);
      said.set('a', [...(said.get('a') ?? []), ...echoed(body.message)]);
      for (const text of ['Let me ', 'see.'])
        yield { event: 'thought', data: JSON.stringify({ text: body.message.startsWith('think') ? text : '' }) };
      const result = { conversation_id: 'a', response: body.message, model: 'echo', usage: null, queue_ms: 0 };
      yield { event: 'done', data: JSON.stringify({ ...result, duration_ms: 1 }) };
    },
    json: async (path: string, request: { method?: string; body?: { message: string } } = {}) => {
      if (path === '/chat' && request.body !== undefined) {
        if (left.length > 0) throw new ApiError(429, full); // no background job may wait
        asked.push(request.body);
        jobs.set(`j${jobs.size}`, request.body);
        return { job_id: `j${jobs.size - 1}` };
      }
      if (request.method === 'DELETE') return { deleted: removed.push(path) > 0 };
      const id = path.split('/')[2] ?? '';
      if (path === `/chat/${id}` && request.method === undefined) {
        looks.push(id);
        if (id === 'gone') throw new ApiError(404, { error: 'not_found', message: '' });
        return { open_turn: open.get(id) ?? null, message_count: said.get(id)?.length ?? 0 };
      }
      asked.push({ path, ...request, signal: null });
      if (path === '/chat/gone/messages') throw new ApiError(404, { error: 'not_found', message: '' });
      if (path.endsWith('/messages')) return { system: null, messages: said.get(id) };
      return { conversation_id: 'fork' };
    },
  };
  const pageClock = {
    now: () => clock.now(),
    after: (ms: number, call: () => void) => clock.after(ms, call),
    every: (ms: number, call: () => void) => clock.every(ms, call),
  };
  const items = new Map<string, string>();
  const storage = {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  };
  const load = () => new Chat(api, pageClock, new TabMemory(storage));
  return { chat: load(), load, clock, asked, removed, said, jobs, open, looks, release };
}

const full = { error: 'concurrency_limited', message: 'the queue is full', retry_after_seconds: 20 };
const shownBy = (chat: Chat) =>
  chat.view.value.turns.map(({ question, state }) => `${question.text} ${state.value.kind}`);
const kindOf = (chat: Chat) => chat.view.value.turns.at(-1)?.state.value.kind;

describe('A chat', () => {
  it('requests the thoughts of the model, and shows them apart from the text', async () => {
    const { chat, asked } = await begin();
    await chat.ask(message('think'));
    expect(asked).toEqual([{ message: 'think', thoughts: true }]);
    expect(chat.view.value.turns.map(({ thoughts, text }) => [thoughts.value, text.value])).toEqual([
      ['Let me see.', 'think'],
    ]);
  });

  it('retries a message when the queue was full, as often and as late as the service says', async () => {
    const { chat, clock, asked } = await begin([full, full]);
    const answered = chat.ask(message('Hi'));
    for (const tries of [1, 2]) {
      await clock.advance(0);
      expect([kindOf(chat), asked.length]).toEqual(['retrying', tries]);
      await clock.advance(19_999);
      expect(asked).toHaveLength(tries);
      await clock.advance(1);
    }
    await answered;
    expect([kindOf(chat), asked.length]).toEqual(['done', 3]);
  });

  it('sends nothing more once the reader stops waiting', async () => {
    const { chat, clock, asked } = await begin([full]);
    const answered = chat.ask(message('Hi'));
    await clock.advance(0);
    chat.stop();
    await answered;
    await clock.advance(60_000);
    expect([kindOf(chat), asked.length]).toEqual(['stopped', 1]);
  });

  it('does not retry a message that was refused for another reason', async () => {
    const { chat } = await begin([{ ...full, error: 'rate_limited' }]);
    await chat.ask(message('Hi'));
    expect(kindOf(chat)).toBe('failed');
  });

  it('continues an answer while another conversation is open, and shows it again on return', async () => {
    const { chat, release } = await begin();
    await chat.ask(message('one'));
    const answered = chat.ask(message('slow'));
    await settled();
    await chat.read('b');
    expect([shownBy(chat), chat.isBusy.value, chat.talks.value.length]).toEqual([[], false, 1]);
    await chat.read('a');
    expect([shownBy(chat), chat.isBusy.value]).toEqual([['one done', 'slow sent'], true]);
    release();
    await answered;
    expect([shownBy(chat), chat.isBusy.value]).toEqual([['one done', 'slow done'], false]);
  });

  it('loads an answer that finished meanwhile from the service, including that of a first message', async () => {
    const { chat, release } = await begin();
    const answered = chat.ask(message('slow'));
    await settled();
    chat.reset();
    release();
    await answered;
    expect([shownBy(chat), chat.talks.value]).toEqual([[], []]);
    await chat.read('a');
    expect(shownBy(chat)).toEqual(['slow done']);
  });

  it('stays at a message that a search has found until the next question', async () => {
    const { chat } = await begin();
    const place = () => [chat.view.value.found, chat.view.value.isInPlace];
    await chat.ask(message('one'));
    await chat.read('b', 3);
    expect(place()).toEqual([{ message: 3 }, true]);
    await chat.read('a');
    expect(place()).toEqual([null, false]);
    await chat.read('a', 0);
    const { found } = chat.view.value;
    await chat.read('a', 0);
    expect([place(), chat.view.value.found === found]).toEqual([[{ message: 0 }, true], false]);
    await chat.ask(message('two'));
    expect(place()).toEqual([null, false]);
  });

  it('finds a conversation without an id by its local name, also once it has an id', async () => {
    const { chat, release } = await begin();
    const answered = chat.ask(message('slow'));
    await settled();
    const { local } = chat.view.value;
    chat.reset();
    await chat.recall(local ?? '');
    expect(shownBy(chat)).toEqual(['slow sent']);
    await chat.read('b');
    release();
    await answered;
    await chat.recall(local ?? '');
    expect([shownBy(chat), chat.view.value.conversationId]).toEqual([['slow done'], 'a']);
  });

  it('can stop an answer after the reader has returned to it', async () => {
    const { chat } = await begin();
    await chat.ask(message('one'));
    const answered = chat.ask(message('slow'));
    await settled();
    await chat.read('b');
    await chat.read('a');
    chat.stop();
    await answered;
    expect([shownBy(chat), chat.isBusy.value]).toEqual([['one done', 'slow stopped'], false]);
  });

  it('allows four simultaneous answers, and sends nothing more until one has ended', async () => {
    const { chat, release, asked } = await begin();
    const answers = [];
    for (const number of [1, 2, 3, 4]) {
      answers.push(chat.ask(message(`slow ${number}`)));
      await settled();
      chat.reset();
    }
    await chat.ask(message('a fifth'));
    expect([shownBy(chat), asked.length, chat.talks.value.length]).toEqual([['a fifth failed'], 4, 5]);
    release();
    await Promise.all(answers);
    await chat.ask(message('a sixth'));
    expect(shownBy(chat)).toEqual(['a fifth failed', 'a sixth done']);
  });

  it('continues with an open answer after a reload, and removes its job at the end', async () => {
    const { chat, load, removed, release } = await begin();
    void chat.ask(message('slow'));
    await settled();
    const { local } = chat.view.value;
    const again = load();
    await again.recall(local ?? '');
    await settled();
    expect([shownBy(again), again.isBusy.value]).toEqual([['slow sent'], true]);
    release();
    await settled();
    expect([shownBy(again), again.view.value.conversationId]).toEqual([['slow done'], 'a']);
    expect(removed).toContain('/jobs/j0');
  });

  it('cancels the job of an answer that the reader stops, also after a reload', async () => {
    const { chat, load, removed } = await begin();
    void chat.ask(message('slow'));
    await settled();
    const again = load();
    await again.recall(chat.view.value.local ?? '');
    again.stop();
    await settled();
    expect([shownBy(again), removed]).toEqual([['slow stopped'], ['/jobs/j0']]);
  });

  it('replaces a turn in a fork of the messages before it', async () => {
    const { chat, asked } = await begin();
    await chat.ask(message('one'));
    await chat.ask(message('two'));
    await chat.askInstead(chat.view.value.turns[1] as Turn, message('other'));
    expect(asked.slice(2)).toEqual([
      { path: '/chat/a/fork', method: 'POST', body: { from: 2 }, signal: null },
      expect.objectContaining({ message: 'other', conversation_id: 'fork' }),
    ]);
    expect(chat.view.value.turns.map((turn) => turn.question.text)).toEqual(['one', 'other']);
  });

  it('opens another version in place: the turns that both have stay the same', async () => {
    const { chat, asked, said } = await begin();
    await chat.ask(message('one'));
    await chat.ask(message('two'));
    const [first] = chat.view.value.turns;
    said.set('b', ['one', 'other', 'more'].flatMap(echoed));
    await chat.openVersion('b', 1);
    expect(asked.slice(2)).toEqual([expect.objectContaining({ path: '/chat/b/messages' })]);
    expect(shownBy(chat)).toEqual(['one done', 'other done', 'more done']);
    expect(chat.view.value.turns[0]).toBe(first);
    expect(chat.view.value).toMatchObject({ conversationId: 'b', isInPlace: true });
    const answered = chat.ask(message('slow'));
    expect(chat.view.value.isInPlace).toBe(false);
    await chat.openVersion('a', 1); // the answer continues in the other version
    expect(shownBy(chat)).toEqual(['one done', 'two done']);
    await chat.openVersion('b', 1);
    expect(shownBy(chat)).toEqual(['one done', 'other done', 'more done', 'slow sent']);
    chat.stop();
    await answered;
  });

  it('stays on the page if another version no longer exists, or another conversation was opened meanwhile', async () => {
    const { chat } = await begin();
    await chat.ask(message('one'));
    await chat.openVersion('gone', 0);
    expect(shownBy(chat)).toEqual(['one done']);
    expect(String((chat.view.value.state as { failure?: Error }).failure)).toContain('has expired, or was deleted');
    const opened = chat.openVersion('b', 0);
    chat.reset();
    await opened;
    expect(chat.view.value.conversationId).toBe(null);
  });

  it('replaces the first turn in a new conversation, which is a version of the old one', async () => {
    const { chat, asked } = await begin();
    await chat.ask({ ...message('one'), system: 'Be brief.' });
    await chat.askInstead(chat.view.value.turns[0] as Turn, message('other'));
    const body = { message: 'other', system: 'Be brief.', version_of: 'a', thoughts: true };
    expect(asked.slice(1)).toEqual([body]);
  });
});

describe('A chat whose conversation is continued elsewhere', () => {
  const elsewhere = (background: boolean) => ({ job_id: 'j0', status: 'running', title: 'slow', background });

  async function opened() {
    const harness = await begin();
    harness.said.set('a', echoed('first'));
    await harness.chat.read('a');
    return harness;
  }

  it('shows turns that were stored since, once', async () => {
    const { chat, said } = await opened();
    said.set('a', [...echoed('first'), ...echoed('second')]);
    await chat.lookElsewhere();
    await chat.lookElsewhere();
    expect(shownBy(chat)).toEqual(['first done', 'second done']);
  });

  it('follows a background job to its end, and keeps its record for the page that asked', async () => {
    const { chat, jobs, open, removed, release } = await opened();
    jobs.set('j0', { message: 'slow' });
    open.set('a', elsewhere(true));
    const shown = chat.lookElsewhere();
    await settled();
    expect([shownBy(chat), chat.isBusy.value]).toEqual([['first done', 'slow running'], true]);
    open.clear();
    release();
    await shown;
    expect([shownBy(chat), chat.isBusy.value, removed]).toEqual([['first done', 'slow done'], false, []]);
  });

  it('waits for the end of a plain request', async () => {
    const { chat, clock, said, open } = await opened();
    open.set('a', elsewhere(false));
    const shown = chat.lookElsewhere();
    await settled();
    expect(shownBy(chat)).toEqual(['first done', 'slow running']);
    open.clear();
    said.set('a', [...echoed('first'), ...echoed('slowly')]);
    await clock.advance(2000);
    await shown;
    expect(shownBy(chat)).toEqual(['first done', 'slowly done']);
  });

  it('cancels the job when the user stops it, and does not show it again while it ends', async () => {
    const { chat, jobs, open, removed } = await opened();
    jobs.set('j0', { message: 'slow' });
    open.set('a', elsewhere(true));
    const shown = chat.lookElsewhere();
    await settled();
    chat.stop();
    await shown;
    expect([shownBy(chat), removed]).toEqual([['first done'], ['/jobs/j0']]);
    await chat.lookElsewhere();
    expect(shownBy(chat)).toEqual(['first done']);
  });

  it('does not remember the turn of another page for the next load of this one', async () => {
    const { chat, load, jobs, open } = await opened();
    jobs.set('j0', { message: 'slow' });
    open.set('a', elsewhere(true));
    const shown = chat.lookElsewhere();
    await settled();
    chat.reset();
    open.clear();
    const next = load();
    await next.read('a');
    expect(shownBy(next)).toEqual(['first done']);
    chat.stop();
    void shown;
  });

  it('asks no more for a conversation that is gone', async () => {
    const { chat, looks } = await opened();
    looks.length = 0;
    Object.assign(chat.view.value, { conversationId: 'gone' });
    await chat.lookElsewhere();
    await chat.lookElsewhere();
    expect(looks).toEqual(['gone']);
  });
});
