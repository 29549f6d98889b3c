import type { Launch, Turn, TurnEnd } from '../../../src/primary/cli/adapter.js';
import type { ConversationState } from '../../../src/primary/cli/live-sessions.js';
import { ConversationStore } from '../../../src/primary/conversations/conversation-store.js';
import { type JobCli, type JobObserver, JobRunner } from '../../../src/primary/jobs/job-runner.js';
import { SlotQueue } from '../../../src/primary/jobs/slot-queue.js';
import type { ModelChoice } from '../../../src/primary/model-choice.js';
import { Cancelled, cliError, RelayError } from '../../../src/shared/errors.js';
import type { JobEnd, JobEvent, JobRequest, TextDelta } from '../../../src/shared/job.js';
import { FakeClock } from '../../support/fake-clock.js';
import { settled } from '../../support/settled.js';

type Script = (signal: AbortSignal) => AsyncGenerator<TextDelta | TurnEnd>;

const usage = { inputTokens: 3, outputTokens: 2, costUsd: null };
const turnEnd: TurnEnd = { type: 'turn-end', text: null, model: 'eliza', usage };
const never = new AbortController().signal;
const gone = new Cancelled('the client has gone');
const shutdown = new RelayError('shutting_down', 'good night', { retryAfterSeconds: 5 });

function delta(text: string): TextDelta {
  return { type: 'text-delta', text };
}

const answers: Script = async function* () {
  yield delta('Hel');
  yield delta('lo');
  yield turnEnd;
};

/** Says something, then nothing until it is told to stop. */
const hangs: Script = async function* (signal) {
  yield delta('Well');
  await aborted(signal);
  throw signal.reason;
};

/** Says more than anybody reads, then nothing until it is told to stop. */
const floods: Script = async function* (signal) {
  for (let number = 0; number < 1000; number++) yield delta(String(number));
  await aborted(signal);
  throw signal.reason;
};

function throws(error: unknown): Script {
  // biome-ignore lint/correctness/useYield: fails before its first word
  return async function* () {
    throw error;
  };
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => (signal.aborted ? resolve(null) : signal.addEventListener('abort', resolve)));
}

/** A CLI process that follows a script. */
class FakeCli implements JobCli {
  readonly turns: Turn[] = [];
  ended = 0;
  /** What it was to stay for when it was given back; null where it was to be ended. */
  keptFor: ConversationState | null = null;
  #conversation: () => ConversationState | null = () => null;
  readonly #script: Script;
  readonly #end: () => Promise<void>;

  constructor(script: Script, end: () => Promise<void>) {
    this.#script = script;
    this.#end = end;
  }

  turn(turn: Turn, signal: AbortSignal): AsyncGenerator<TextDelta | TurnEnd> {
    this.turns.push(turn);
    return this.#script(signal);
  }

  keepFor(conversation: () => ConversationState | null): void {
    this.#conversation = conversation;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.keptFor = this.#conversation();
    this.ended++;
    await this.#end();
  }
}

class Witness implements JobObserver {
  readonly ends: [requestId: string, end: JobEnd][] = [];
  readonly broken: unknown[] = [];
  readonly waits: number[] = [];
  readonly firstDeltas: number[] = [];

  firstDelta(_request: JobRequest, ms: number): void {
    this.firstDeltas.push(ms);
  }

  jobStarted(queueMs: number): void {
    this.waits.push(queueMs);
  }

  jobEnded({ requestId }: JobRequest, end: JobEnd): void {
    this.ends.push([requestId, end]);
  }

  jobBroke(thrown: unknown): void {
    this.broken.push(thrown);
  }
}

interface Options {
  readonly script?: Script;
  readonly maxActive?: number;
  readonly maxWaiting?: number;
  readonly models?: Partial<ModelChoice>;
  /** Awaited, or thrown, when a process is started or ended. */
  readonly start?: (signal: AbortSignal) => Promise<void>;
  readonly end?: () => Promise<void>;
}

const done = async () => {};

class House {
  readonly clock = new FakeClock();
  readonly witness = new Witness();
  readonly launches: Launch[] = [];
  readonly processes: FakeCli[] = [];
  readonly slots: SlotQueue;
  readonly runner: JobRunner;
  #requests = 0;

  constructor({ script = answers, maxActive = 1, maxWaiting = 10, models, start = done, end = done }: Options = {}) {
    this.slots = new SlotQueue({ maxActive, maxWaiting, maxWaitingBytes: 1000 });
    const takeCli = async (launch: Launch, _conversation: unknown, signal: AbortSignal) => {
      this.launches.push(launch);
      await start(signal);
      signal.throwIfAborted();
      const cli = new FakeCli(script, end);
      this.processes.push(cli);
      return cli;
    };
    const choice = { fallback: null, allowed: null, label: null, ...models };
    const limits = { queueTimeoutMs: 15_000, executionMs: 120_000 };
    const { slots, clock, witness: observer } = this;
    const conversationLimits = { ttlMs: 1000, maxConversations: 10, maxBytes: 10_000 };
    const conversations = new ConversationStore(conversationLimits, clock, () => {});
    const countTokens = async (texts: readonly string[]) => texts.join('').length;
    this.runner = new JobRunner({ slots, conversations, takeCli, countTokens, observer, clock }, choice, limits);
  }

  run(request: Partial<JobRequest> = {}, caller = new AbortController().signal): AsyncIterable<JobEvent> {
    const requestId = `job ${++this.#requests}`;
    const door = { operation: 'ask', requestId, client: 'a', owner: '', conversationId: null } as const;
    const plain = { ...door, text: 'Hi', system: null, model: null, wantsPositions: false };
    return this.runner.run({ ...plain, ...request }, caller);
  }

  get outcomes(): (readonly [requestId: string, outcome: string])[] {
    return this.witness.ends.map(([requestId, { outcome }]) => [requestId, outcome]);
  }

  /** Everything that was taken has been given back. */
  expectTidy(): void {
    expect([this.slots.active, this.slots.waiting, this.clock.pending]).toEqual([0, 0, 0]);
    expect(this.processes.map(({ ended }) => ended)).toEqual(this.processes.map(() => 1));
  }
}

async function all(events: AsyncIterable<JobEvent>): Promise<JobEvent[]> {
  const seen: JobEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

function endOf(events: readonly JobEvent[]): JobEnd {
  const ends = events.filter((event) => event.type === 'job-end');
  expect(ends).toHaveLength(1);
  expect(events.at(-1)).toBe(ends[0]);
  return ends[0] as JobEnd;
}

describe('a job that goes well', () => {
  it('yields its start, its text and one end', async () => {
    const house = new House();
    expect(await all(house.run({ text: 'Hello?', system: 'Be brief.', wantsPositions: true }))).toEqual([
      { type: 'job-start', queueMs: 0 },
      delta('Hel'),
      delta('lo'),
      {
        type: 'job-end',
        outcome: 'ok',
        text: null,
        model: 'eliza',
        usage,
        conversation: null,
        queueMs: 0,
        executionMs: 0,
      },
    ]);
    expect(house.processes[0]?.turns).toEqual([{ text: 'Hello?', system: 'Be brief.', history: [] }]);
    expect(house.outcomes).toEqual([['job 1', 'ok']]);
    house.expectTidy();
  });

  it('yields its text in one piece to a caller that waits for the whole answer', async () => {
    const events = await all(new House().run());
    expect(events.map((event) => (event.type === 'text-delta' ? event.text : event.type))).toEqual([
      'job-start',
      'Hello',
      'job-end',
    ]);
  });

  it('tells how long each running job has had its slot, the longest first', async () => {
    const house = new House({ script: hangs, maxActive: 2 });
    const caller = new AbortController();
    const first = all(house.run({}, caller.signal));
    await house.clock.advance(30);
    const rest = [all(house.run({}, caller.signal)), all(house.run({}, caller.signal))];
    await house.clock.advance(10);
    expect(house.runner.ages).toEqual([40, 10]);
    caller.abort(gone);
    await Promise.all([first, ...rest]);
    expect(house.runner.ages).toEqual([]);
  });

  it('tells when its first text has come, counted from its slot, and of no other text', async () => {
    const house: House = new House({
      script: async function* () {
        await house.clock.advance(70);
        yield* answers(never);
      },
    });
    await all(house.run());
    expect(house.witness.firstDeltas).toEqual([70]);
  });

  it('runs as many at once as there are slots, the others after them, each once', async () => {
    const house = new House({ maxActive: 3, maxWaiting: 10 });
    const jobs = Array.from({ length: 10 }, () => all(house.run()));
    expect([house.slots.active, house.slots.waiting]).toEqual([3, 7]);
    for (const events of await Promise.all(jobs)) expect(endOf(events).outcome).toBe('ok');
    expect(house.outcomes).toHaveLength(10);
    expect(house.processes).toHaveLength(10);
    house.expectTidy();
  });

  it('has its end told before its processes are gone, its slot only after', async () => {
    let finish = () => {};
    const end = () => new Promise<void>((resolve) => (finish = resolve));
    const house = new House({ end });
    const events: JobEvent[] = [];
    const reading = (async () => {
      for await (const event of house.run()) events.push(event);
    })();
    await settled();
    expect(endOf(events).outcome).toBe('ok');
    expect(house.slots.active).toBe(1);
    finish();
    await reading;
    house.expectTidy();
  });

  it('tells how long it has waited and worked', async () => {
    const house = new House({ script: hangs });
    const first = all(house.run());
    const second = all(house.run());
    await house.clock.advance(4000);
    house.runner.cutAll(shutdown);
    const [events] = await Promise.all([first, second]);
    expect(events[0]).toEqual({ type: 'job-start', queueMs: 0 });
    expect(endOf(await first)).toMatchObject({ queueMs: 0, executionMs: 4000 });
    expect(endOf(await second)).toMatchObject({ queueMs: 4000, executionMs: 0 });
  });
});

describe('a job that ends otherwise', () => {
  it('ends in timeout when execution takes too long, counted from its start', async () => {
    const house = new House({ script: hangs });
    const running = all(house.run());
    await house.clock.advance(119_999);
    expect(house.slots.active).toBe(1);
    await house.clock.advance(1);
    const events = await running;
    expect(events.map(({ type }) => type)).toEqual(['job-start', 'text-delta', 'job-end']);
    expect(endOf(events)).toMatchObject({ outcome: 'timeout', executionMs: 120_000, failure: { code: 'timeout' } });
    house.expectTidy();
  });

  it('has its whole execution time even if it had to wait', async () => {
    const house = new House({ script: hangs });
    const caller = new AbortController();
    const first = all(house.run({}, caller.signal));
    const second = all(house.run());
    await house.clock.advance(10_000);
    caller.abort(gone);
    await first;
    await house.clock.advance(119_000);
    expect(house.slots.active).toBe(1);
    await house.clock.advance(1000);
    expect(endOf(await second)).toMatchObject({ outcome: 'timeout', queueMs: 10_000, executionMs: 120_000 });
    house.expectTidy();
  });

  it('ends in queue_timeout when it waits too long, and starts nothing', async () => {
    const house = new House({ script: hangs });
    const caller = new AbortController();
    const running = all(house.run({}, caller.signal));
    const waiting = all(house.run());
    await house.clock.advance(14_999);
    expect(house.slots.waiting).toBe(1);
    await house.clock.advance(1);
    expect(house.slots.waiting).toBe(0);
    expect(await waiting).toEqual([
      expect.objectContaining({ outcome: 'queue_timeout', queueMs: 15_000, executionMs: 0 }),
    ]);
    caller.abort(gone);
    await running;
    expect(house.processes).toHaveLength(1);
    expect(house.outcomes).toEqual([
      ['job 2', 'queue_timeout'],
      ['job 1', 'cancelled'],
    ]);
    house.expectTidy();
  });

  it('ends in cli_error when the CLI says so', async () => {
    const house = new House({ script: throws(cliError('quota', 'used up')) });
    expect(endOf(await all(house.run()))).toMatchObject({
      outcome: 'cli_error',
      failure: { code: 'cli_error', message: 'used up', details: [{ path: 'reason', message: 'quota' }] },
    });
    expect(house.witness.broken).toEqual([]);
    house.expectTidy();
  });

  it('ends in spawn_error when the CLI can not be started', async () => {
    const house = new House({ start: () => Promise.reject(new RelayError('spawn_error', 'not installed')) });
    expect(endOf(await all(house.run()))).toMatchObject({
      outcome: 'spawn_error',
      failure: { code: 'spawn_error', message: 'not installed' },
    });
    expect(house.witness.broken).toEqual([]);
    house.expectTidy();
  });

  it('ends in cancelled when its caller goes while it waits, and starts nothing', async () => {
    const house = new House({ script: hangs });
    const [first, second] = [new AbortController(), new AbortController()];
    const running = all(house.run({}, first.signal));
    const waiting = all(house.run({}, second.signal));
    await settled();
    second.abort(gone);
    expect(house.slots.waiting).toBe(0);
    expect(endOf(await waiting)).toMatchObject({ outcome: 'cancelled' });
    first.abort(gone);
    await running;
    expect(house.processes).toHaveLength(1);
    house.expectTidy();
  });

  it('ends in cancelled when its caller goes while it runs', async () => {
    const house = new House({ script: hangs });
    const caller = new AbortController();
    const running = all(house.run({}, caller.signal));
    await settled();
    caller.abort(gone);
    expect(endOf(await running)).toMatchObject({ outcome: 'cancelled' });
    house.expectTidy();
  });

  it('ends in cancelled when its caller goes while the CLI starts', async () => {
    const house = new House({ start: async (signal) => void (await aborted(signal)) });
    const caller = new AbortController();
    const running = all(house.run({}, caller.signal));
    await settled();
    caller.abort(gone);
    expect(endOf(await running)).toMatchObject({ outcome: 'cancelled' });
    expect(house.processes).toHaveLength(0);
    house.expectTidy();
  });

  it('ends in cancelled for a caller who had gone before it came', async () => {
    const house = new House();
    expect(endOf(await all(house.run({}, AbortSignal.abort(gone))))).toMatchObject({ outcome: 'cancelled' });
    expect(house.launches).toEqual([]);
    house.expectTidy();
  });

  it('ends in shutting_down when all work is cut, running or waiting', async () => {
    const house = new House({ script: hangs });
    const jobs = [all(house.run()), all(house.run()), all(house.run())];
    await settled();
    house.runner.cutAll(shutdown);
    for (const events of await Promise.all(jobs)) {
      expect(endOf(events)).toMatchObject({ outcome: 'shutting_down', failure: { retryAfterSeconds: 5 } });
    }
    expect(house.outcomes).toHaveLength(3);
    house.expectTidy();
  });

  it.each<[string, Options]>([
    ['the CLI process breaks', { script: throws(new TypeError('secret')) }],
    ['the start of the CLI breaks', { start: () => Promise.reject(new TypeError('secret')) }],
  ])('ends in internal_error when %s, and the defect is reported', async (_, options) => {
    const house = new House(options);
    const end = endOf(await all(house.run()));
    expect(end).toMatchObject({ outcome: 'internal_error', failure: { code: 'internal_error' } });
    expect(JSON.stringify(end)).not.toContain('secret');
    expect(house.witness.broken).toEqual([new TypeError('secret')]);
    expect(house.outcomes).toEqual([['job 1', 'internal_error']]);
    house.expectTidy();
  });
});

describe('a job', () => {
  it.each<[string, Script, string]>([
    ['ok', answers, 'ok'],
    ['cli_error', throws(cliError('other', 'no')), 'cli_error'],
  ])('keeps its outcome %s when its process breaks while it is ended', async (_, script, outcome) => {
    const broken = new TypeError('broken');
    const house = new House({ script, end: () => Promise.reject(broken) });
    expect(endOf(await all(house.run())).outcome).toBe(outcome);
    expect(house.outcomes).toEqual([['job 1', outcome]]);
    expect(house.witness.broken).toContain(broken);
    house.expectTidy();
  });

  it('ends by the first of several reasons', async () => {
    const house = new House({ script: hangs });
    const caller = new AbortController();
    const running = all(house.run({}, caller.signal));
    await settled();
    house.runner.cutAll(shutdown);
    caller.abort(gone);
    house.runner.cutAll(new RelayError('timeout', 'later'));
    expect(endOf(await running)).toMatchObject({ outcome: 'shutting_down' });
    expect(house.outcomes).toEqual([['job 1', 'shutting_down']]);
  });

  it('is not cut any more once it has ended', async () => {
    const house = new House();
    await all(house.run());
    house.runner.cutAll(shutdown);
    await settled();
    expect(house.outcomes).toEqual([['job 1', 'ok']]);
  });

  it('gives its slot back at its deadline even if nobody reads', async () => {
    const house = new House({ script: floods });
    const unread = house.run();
    const next = all(house.run());
    await house.clock.advance(14_000);
    expect([house.slots.active, house.slots.waiting]).toEqual([1, 1]);
    house.runner.cutAll(shutdown);
    await next;
    const slow = house.run()[Symbol.asyncIterator]();
    await slow.next();
    await house.clock.advance(120_000);
    expect(house.outcomes.map(([, outcome]) => outcome).toSorted()).toEqual([
      'shutting_down',
      'shutting_down',
      'timeout',
    ]);
    house.expectTidy();
    const late = await all(unread);
    expect(endOf(late).outcome).toBe('shutting_down');
  });

  it('does not run far ahead of its reader', async () => {
    let said = 0;
    const house = new House({
      script: async function* (signal) {
        while (!signal.aborted) yield delta(String(++said));
        throw signal.reason;
      },
    });
    const caller = new AbortController();
    const events = house.run({ wantsPositions: true }, caller.signal)[Symbol.asyncIterator]();
    await settled(100);
    expect(said).toBeLessThan(20);
    for (let taken = 0; taken < 50; taken++) await events.next();
    await settled(100);
    expect(said).toBeGreaterThan(48);
    expect(said).toBeLessThan(70);
    caller.abort(gone);
    await house.slots.idle();
    house.expectTidy();
  });
});

describe('a turn of a conversation', () => {
  /** Runs it to its end; returns its conversation's id. */
  async function turn(house: House, conversationId: string | null): Promise<string> {
    const end = endOf(await all(house.run({ operation: 'chat', conversationId })));
    if (end.outcome !== 'ok' || end.conversation === null) throw new Error(end.outcome);
    return end.conversation.id;
  }

  it('has its process kept for the conversation as the turn has left it', async () => {
    const house = new House();
    const id = await turn(house, null);
    await turn(house, id);
    expect(house.processes.map(({ keptFor }) => keptFor)).toEqual([
      { id, messageCount: 2 },
      { id, messageCount: 4 },
    ]);
  });

  it('has its process ended where another turn has gone on meanwhile, because its client reads slowly', async () => {
    const house = new House({ maxActive: 2 });
    const id = await turn(house, null);
    const slow = house.run({ operation: 'chat', conversationId: id, wantsPositions: true })[Symbol.asyncIterator]();
    for (let taken = 0; taken < 2; taken++) await slow.next();
    await settled();
    expect(house.outcomes.at(-1)).toEqual(['job 2', 'ok']);
    await turn(house, id);
    const [, first, second] = house.processes;
    expect([first?.ended, second?.keptFor]).toEqual([0, { id, messageCount: 6 }]);
    await all({ [Symbol.asyncIterator]: () => slow });
    expect([first?.ended, first?.keptFor]).toEqual([1, null]);
    house.expectTidy();
  });
});

describe('admission of a job', () => {
  it('is refused at once when the queue is full, and nothing is taken', async () => {
    const house = new House({ script: hangs, maxWaiting: 1 });
    const jobs = [all(house.run()), all(house.run())];
    expect(() => house.run()).toThrow(expect.objectContaining({ code: 'concurrency_limited' }));
    expect([house.slots.active, house.slots.waiting, house.slots.refused]).toEqual([1, 1, 1]);
    house.runner.cutAll(shutdown);
    await Promise.all(jobs);
    expect(house.outcomes).toHaveLength(2);
    house.expectTidy();
  });

  it('counts the bytes of its text and its system text', async () => {
    const house = new House({ script: hangs });
    const jobs = [all(house.run()), all(house.run({ text: 'é'.repeat(300), system: 'x'.repeat(400) }))];
    expect(() => house.run({ text: 'y' })).toThrow(expect.objectContaining({ code: 'concurrency_limited' }));
    house.runner.cutAll(shutdown);
    await Promise.all(jobs);
  });

  it('is refused for a message whose bytes are more than all conversations may hold', async () => {
    const house = new House();
    const chat = (length: number) => house.run({ operation: 'chat', text: 'é'.repeat(length) });
    expect(() => chat(5001)).toThrow(expect.objectContaining({ code: 'validation_error' }));
    expect([house.slots.active, house.witness.ends.length]).toEqual([0, 0]);
    expect(endOf(await all(chat(5000))).outcome).toBe('ok');
  });

  it('is refused for a model that may not be named, before anything is taken', () => {
    const house = new House({ models: { allowed: ['a', 'b'] } });
    expect(() => house.run({ model: 'c' })).toThrow(
      expect.objectContaining({ code: 'validation_error', message: 'model: must be one of a, b' }),
    );
    expect([house.slots.active, house.witness.ends.length]).toEqual([0, 0]);
  });
});

describe('the model of a job', () => {
  it.each<[string, string | null, Partial<ModelChoice>, string | null]>([
    ['the one requested', 'b', { fallback: 'a' }, 'b'],
    ['the default where none is requested', null, { fallback: 'a' }, 'a'],
    ['left to the CLI where there is no default', null, {}, null],
    ['the default even beside a list that does not name it', null, { fallback: 'a', allowed: ['b'] }, 'a'],
  ])('is %s', async (_, model, models, launched) => {
    const house = new House({ models });
    await all(house.run({ model, system: 'S' }));
    expect(house.launches).toEqual([{ model: launched, system: 'S' }]);
  });

  it.each<[string, string | null, Partial<ModelChoice>, string | null]>([
    ['as requested', 'b', { label: 'c' }, 'b'],
    ['as the house calls it', null, { label: 'c' }, 'c'],
    ['by no name', null, {}, null],
  ])('is told %s where the CLI names none', async (_, model, models, told) => {
    const script: Script = async function* () {
      yield { ...turnEnd, model: null };
    };
    const house = new House({ script, models });
    expect(endOf(await all(house.run({ model })))).toMatchObject({ outcome: 'ok', model: told });
  });
});
