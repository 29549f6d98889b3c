import { deepEqual, equal, ok } from 'node:assert/strict';
import { array, boolean, constant, constantFrom, nat, oneof, record, tuple } from 'fast-check';
import { noBounds } from '../../../src/primary/access/clients.js';
import type { ConversationStore } from '../../../src/primary/conversations/conversation-store.js';
import { orAborted, withResolvers } from '../../../src/shared/async.js';
import { type ClientText, noClient } from '../../../src/shared/client.js';
import { cliError, RelayError } from '../../../src/shared/errors.js';
import type { JobEvent } from '../../../src/shared/job.js';
import { type Player, pick, playAll } from '../../support/basics/properties.js';
import { textDelta } from '../../support/jobs/answer-events.js';
import {
  all,
  clientGone,
  endOf,
  type JobHarness,
  jobHarness,
  type Script,
  shutdown,
  turnEnd,
} from '../../support/jobs/job-harness.js';
import { failureOf } from '../../support/stores/conversations.js';

const limits = { maxActive: 2, maxWaiting: 4 };
const workers = 3;

type JobStep =
  | {
      readonly type: 'ask';
      readonly client: number;
      readonly worker: number;
      readonly isStreamed: boolean;
      readonly isLate: boolean;
    }
  | { readonly type: 'chat'; readonly client: number; readonly worker: number; readonly conversation: number }
  | {
      readonly type: 'answer' | 'fail' | 'break' | 'leave' | 'kill-worker' | 'delete' | 'vanish';
      readonly which: number;
    }
  | { readonly type: 'flood'; readonly client: number; readonly worker: number; readonly count: number }
  | { readonly type: 'linger' | 'miss-start' | 'cut' }
  | { readonly type: 'pass'; readonly ms: number };

const clientFields = { client: nat(5), worker: nat(workers - 1) };
/** Burst of jobs that may fill one client's places beyond its share. */
const flood = record({
  type: constant('flood' as const),
  ...clientFields,
  count: nat(limits.maxActive + limits.maxWaiting),
});

const ways = array(
  oneof(
    {
      weight: 4,
      arbitrary: record({
        type: constant('ask' as const),
        ...clientFields,
        isStreamed: boolean(),
        isLate: constantFrom(true, false, false, false),
      }),
    },
    { weight: 4, arbitrary: record({ type: constant('chat' as const), ...clientFields, conversation: nat(3) }) },
    { weight: 6, arbitrary: record({ type: constant('answer' as const), which: nat(3) }) },
    {
      weight: 5,
      arbitrary: record({
        type: constantFrom('fail', 'break', 'leave', 'kill-worker', 'delete', 'vanish'),
        which: nat(9),
      }),
    },
    { weight: 2, arbitrary: record({ type: constantFrom('linger', 'miss-start') }) },
    record({ type: constant('cut' as const) }),
    record({ type: constant('pass' as const), ms: constantFrom(1, 100, 15_000, 120_000, 600_000) }),
  ),
  { maxLength: 30, size: 'max' },
);

/** Sequences that begin with a burst: only the first client, or one after a long time, is alone. */
const jobSteps = tuple(flood, ways).map(([first, others]) => [first, ...others]);

/** A quarter of the queue. */
const ownPlaces = 1;
const placesOf = (client: ClientText) => boundsOf(client).maxQueued ?? ownPlaces;
const boundsOf = (client: ClientText) =>
  client === 'user 1' ? { maxRunning: 1, maxQueued: 2, weight: 1 } : noBounds(client);

/** A turn that a program is running. */
interface RunningTurn {
  write(): void;
  end(): void;
  fail(error: Error): void;
  isOver: boolean;
}

/** Runs steps on a job runner with a real waiting room and real conversations. Plays its clients and programs. */
class JobPlayer implements Player<JobStep> {
  readonly #turns: RunningTurn[] = [];
  readonly #callers: { readonly worker: number; readonly controller: AbortController }[] = [];
  /** All events of each admitted job, once it has ended. */
  readonly #read: Promise<JobEvent[]>[] = [];
  readonly #ids = new Set<string>();
  readonly #lingering: (() => void)[] = [];
  readonly #harness: JobHarness;
  #doesLinger = false;
  #missesStart = false;
  #accepted = 0;
  #refused = 0;
  #counters: readonly number[] = [];

  constructor() {
    const script: Script = (sink, signal) => this.#begin(sink, signal);
    this.#harness = jobHarness({
      ...limits,
      boundsOf,
      script,
      start: () => this.#start(),
      release: () => this.#release(),
    });
  }

  async perform(step: JobStep): Promise<void> {
    if (step.type === 'flood') this.#flood(step);
    else if ('client' in step) this.#ask(step);
    else if (step.type === 'pass') await this.#harness.clock.advance(step.ms);
    else if ('which' in step) this.#act(step.type, step.which);
    else if (step.type === 'linger') this.#doesLinger = true;
    else if (step.type === 'miss-start') this.#missesStart = true;
    else this.#harness.runner.openJobs.cutAll(shutdown);
  }

  check(): void {
    const { room, conversations, ends, processes, runner } = this.#harness;
    ok(room.active <= limits.maxActive);
    ok(room.waiting <= limits.maxWaiting);
    const released = processes.filter((process) => process.released.length > 0).length;
    equal(
      processes.every((process) => process.released.length <= 1),
      true,
    );
    ok(processes.length - released + this.#lingering.length <= room.active);
    ok(runner.openJobs.running.length <= room.active);
    const ended = ends.map(({ requestId }) => requestId);
    equal(new Set(ended).size, ended.length);
    ok(ended.length <= this.#accepted);
    const refused = [room.refused, room.refusedByBound, conversations.refused];
    equal(
      refused.reduce((sum, count) => sum + count),
      this.#refused,
    );
    this.#checkCounters([...refused, conversations.counts.created, ended.length]);
    const perClient = [...room.waitingByClient.values()];
    equal(
      perClient.reduce((sum, count) => sum + count, 0),
      room.waiting,
    );
    ok(room.waitingByClient.get('key client 1') ?? 0 <= 2);
    checkCounts(conversations);
  }

  async finish(): Promise<void> {
    const { ends, conversations, runner } = this.#harness;
    this.#doesLinger = false;
    runner.openJobs.cutAll(shutdown);
    for (const vanish of this.#lingering.splice(0)) vanish();
    const streams = await Promise.all(this.#read);
    await this.#harness.expectTidy();
    const read = streams.map(endOf);
    deepEqual(read.map(({ outcome }) => outcome).sort(), ends.map(({ end }) => end.outcome).sort());
    equal(ends.length, this.#accepted);
    for (const events of streams) checkOrder(events);
    for (let more = 0; more < 10; more++) conversations.turn(null, noClient, null, 1).openTurn(); // none counts as in use
  }

  #checkCounters(counters: readonly number[]): void {
    for (const [index, before] of this.#counters.entries()) ok((counters[index] ?? 0) >= before);
    this.#counters = counters;
  }

  #flood({ client, worker, count }: Extract<JobStep, { type: 'flood' }>): void {
    const one = { type: 'ask' as const, client, worker, isStreamed: false, isLate: false };
    for (let sent = 0; sent < count; sent++) this.#ask(one);
  }

  #ask(step: Extract<JobStep, { type: 'ask' | 'chat' }>): void {
    const controller = new AbortController();
    if (step.type === 'ask' && step.isLate) controller.abort(clientGone);
    const request =
      step.type === 'ask'
        ? { isStreamed: step.isStreamed }
        : { operation: 'chat' as const, conversationId: pick([null, ...this.#ids], step.conversation) ?? null };
    const client = `user ${step.client}` as const;
    const { room } = this.#harness;
    const { refused: full, refusedByBound: bound } = room;
    try {
      const stream = this.#harness.run({ ...request, client }, controller.signal);
      this.#accepted++;
      this.#callers.push({ worker: step.worker, controller });
      const isLate = controller.signal.aborted;
      this.#read.push(all(stream).then((events) => this.#remember(events, isLate)));
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      if (error.code === 'concurrency_limited') this.#refuse(client, room.refused > full, room.refusedByBound > bound);
      else equal(error.code, 'validation_error'); // the conversation has been deleted
    }
  }

  /**
   * Expects that a client without a waiting job is refused only if no place is free, and that a client refused by its
   * bound has used its share.
   */
  #refuse(client: ClientText, wasFull: boolean, wasBound: boolean): void {
    const { waitingByClient, waiting } = this.#harness.room;
    const own = waitingByClient.get(client) ?? 0;
    if (wasFull && own === 0) equal(waiting, limits.maxWaiting);
    if (wasBound) ok(own >= placesOf(client));
    this.#refused++;
  }

  #remember(events: JobEvent[], isLate: boolean): JobEvent[] {
    const end = endOf(events);
    if (isLate) equal(end.outcome, 'cancelled');
    if (end.outcome === 'ok' && end.conversation !== null) this.#ids.add(end.conversation.id);
    return events;
  }

  #act(type: Extract<JobStep, { which: number }>['type'], which: number): void {
    const turn = pick(
      this.#turns.filter(({ isOver }) => !isOver),
      which,
    );
    if (type === 'answer') turn?.end();
    else if (type === 'fail') turn?.fail(cliError('other', 'it failed'));
    else if (type === 'break') turn?.fail(new Error('a defect'));
    else if (type === 'leave') pick(this.#callers, which)?.controller.abort(clientGone);
    else if (type === 'kill-worker') this.#kill(which % workers);
    else if (type === 'delete') this.#delete(pick([...this.#ids], which));
    else this.#lingering.shift()?.();
  }

  #kill(worker: number): void {
    for (const caller of this.#callers) if (caller.worker === worker) caller.controller.abort(clientGone);
  }

  #delete(id: string | undefined): void {
    if (id === undefined) return;
    this.#ids.delete(id);
    expect([undefined, 'not_found']).toContain(
      failureOf(() => this.#harness.conversations.removeConversation(id, noClient))?.code,
    );
  }

  async #start(): Promise<void> {
    const misses = this.#missesStart;
    this.#missesStart = false;
    if (misses) throw new RelayError('spawn_error', 'no such program');
  }

  /** Delays the release of one process if a step has requested a delay. */
  async #release(): Promise<void> {
    if (!this.#doesLinger) return;
    this.#doesLinger = false;
    await new Promise<void>((resolve) => this.#lingering.push(resolve));
  }

  #begin(...[sink, signal]: Parameters<Script>): ReturnType<Script> {
    const { promise, resolve, reject } = withResolvers<typeof turnEnd>();
    const turn = {
      write: () => sink.write(textDelta('word ')),
      end: () => resolve(turnEnd),
      fail: reject,
      isOver: false,
    };
    turn.write();
    this.#turns.push(turn);
    return orAborted(promise, signal).finally(() => {
      turn.isOver = true;
    });
  }
}

/** Expects the order: admission and positions, the start, the text, one end. */
function checkOrder(events: readonly JobEvent[]): void {
  const ranks = {
    'job-admitted': -1,
    'job-queued': 0,
    'job-start': 1,
    'job-model': 2,
    'call-start': 2,
    'call-delta': 2,
    'text-delta': 2,
    'thought-delta': 2,
    'thought-end': 2,
    search: 2,
    passage: 2,
    'job-end': 3,
  };
  const order = events.map(({ type }) => ranks[type]);
  deepEqual(
    order,
    [...order].sort((a, b) => a - b),
  );
  ok(events.filter(({ type }) => type === 'job-start').length <= 1);
}

function checkCounts({ counts }: ConversationStore): void {
  ok(Math.min(...Object.values(counts)) >= 0);
  ok(counts.conversations <= Math.min(10, counts.created));
}

it('Jobs end exactly once each, and release what they reserved, after any sequence of events', async () => {
  await playAll<JobStep>(jobSteps, () => new JobPlayer());
}, 3_600_000);
