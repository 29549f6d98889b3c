import { deepEqual, equal, ok } from 'node:assert/strict';
import { array, boolean, constant, constantFrom, nat, oneof, option, record } from 'fast-check';
import type { ConversationTurn } from '../../../src/primary/conversations/conversation-turn.js';
import type { ClientText } from '../../../src/shared/client.js';
import type { ConversationSnapshot } from '../../../src/shared/conversation.js';
import { type Player, pick, playAll } from '../../support/basics/properties.js';
import { failureOf, StoreHarness, ttlMs } from '../../support/stores/conversations.js';

const limits = { maxConversations: 4, maxBytes: 200, maxBytesEach: 90 };
/** A quarter of each limit. */
const share = { conversations: 1, bytes: 50 };
const owners = ['key alice', 'key bob', 'key carol'] as const;

type StoreStep =
  | {
      readonly type: 'turn';
      readonly of: number | null;
      readonly isOwner: boolean;
      readonly bytes: number;
      readonly system: number | null;
    }
  | { readonly type: 'commit'; readonly which: number; readonly answer: number }
  | { readonly type: 'close' | 'look'; readonly which: number }
  | { readonly type: 'remove'; readonly which: number; readonly isOwner: boolean }
  | { readonly type: 'expire' }
  | { readonly type: 'fork'; readonly which: number; readonly isOwner: boolean; readonly messages: number | null }
  | { readonly type: 'list'; readonly which: number; readonly limit: number }
  | { readonly type: 'pass'; readonly ms: number };

const steps = array(
  oneof(
    {
      weight: 6,
      arbitrary: record({
        type: constant('turn' as const),
        of: option(nat(9)),
        isOwner: constantFrom(true, true, true, false),
        bytes: nat(40),
        system: option(nat(20), { freq: 1 }),
      }),
    },
    { weight: 5, arbitrary: record({ type: constant('commit' as const), which: nat(5), answer: nat(60) }) },
    { weight: 5, arbitrary: record({ type: constantFrom('close', 'look'), which: nat(9) }) },
    record({ type: constant('remove' as const), which: nat(9), isOwner: boolean() }),
    record({ type: constant('expire' as const) }),
    record({
      type: constant('fork' as const),
      which: nat(9),
      isOwner: constantFrom(true, true, true, false),
      messages: option(constantFrom(1, 2, 4, 6)),
    }),
    record({ type: constant('list' as const), which: nat(2), limit: constantFrom(1, 2, 50) }),
    record({ type: constant('pass' as const), ms: constantFrom(1, 100, ttlMs / 2, ttlMs) }),
  ),
  { maxLength: 50, size: 'max' },
);

/** Expected state of one conversation. */
interface ExpectedConversation {
  id: string | null;
  readonly owner: ClientText;
  readonly systemBytes: number;
  readonly texts: string[];
  activeMs: number;
  /** Queued turns; the first one runs. */
  line: ExpectedTurn[];
  state: 'draft' | 'kept' | 'removed';
}

interface ExpectedTurn {
  readonly turn: ConversationTurn;
  readonly of: ExpectedConversation;
  readonly text: string;
}

/** Runs steps on a store, and computes its expected content in plain lists. */
class StorePlayer implements Player<StoreStep> {
  readonly #harness = new StoreHarness(limits);
  readonly #all: ExpectedConversation[] = [];
  /** Stored conversations, the least recently active first. */
  #kept: ExpectedConversation[] = [];
  #turns: ExpectedTurn[] = [];
  #created = 0;
  #removed = 0;

  async perform(step: StoreStep): Promise<void> {
    if (step.type === 'turn') this.#turn(step);
    else if (step.type === 'commit') this.#commit(pick(this.#running, step.which), step.answer);
    else if (step.type === 'close') this.#close(pick(this.#turns, step.which));
    else if (step.type === 'look') this.#look(pick(this.#all, step.which));
    else if (step.type === 'remove') this.#remove(pick(this.#all, step.which), step.isOwner);
    else if (step.type === 'fork') this.#fork(pick(this.#all, step.which), step);
    else if (step.type === 'list') this.#list(pick(owners, step.which) as ClientText, step.limit);
    else if (step.type === 'pass') await this.#harness.clock.advance(step.ms);
    else {
      this.#harness.store.expireConversations();
      this.#expire();
    }
  }

  check(): void {
    const { counts } = this.#harness.store;
    const bytes = allBytes(this.#kept);
    const tokens = this.#kept.reduce((sum, { texts }) => sum + texts.length, 0);
    deepEqual(counts, { conversations: this.#kept.length, bytes, tokens, created: this.#created });
    const idle = this.#kept.filter(({ line }) => line.length === 0);
    equal(idle.length === 0 || (counts.conversations <= 4 && bytes <= limits.maxBytes), true);
    equal(this.#harness.removed.length, this.#removed);
    ok(this.#inUse.length <= limits.maxConversations);
    for (const { turn, of } of this.#turns) equal(turn.mustWait, of.line[0]?.turn !== turn);
  }

  finish(): void {
    for (const turn of [...this.#turns]) this.#close(turn);
    this.check();
    for (const entry of this.#all) this.#look(entry);
    for (const { id, owner } of [...this.#kept]) this.#harness.store.removeConversation(id ?? '', owner);
    expect(this.#harness.store.counts).toMatchObject({ conversations: 0, bytes: 0, tokens: 0 });
  }

  get #running(): ExpectedTurn[] {
    return this.#turns.filter((turn) => turn.of.line[0] === turn);
  }

  get #inUse(): ExpectedConversation[] {
    return this.#all.filter(({ line, state }) => line.length > 0 && state !== 'removed');
  }

  #turn({ of, isOwner, bytes, system }: Extract<StoreStep, { type: 'turn' }>): void {
    const known = of === null ? undefined : pick(this.#all, of);
    if (of !== null && known?.id == null) return;
    this.#expire();
    const owner = known === undefined ? (pick(owners, bytes) as ClientText) : ownerOf(known, isOwner);
    const text = 'ü'.repeat(bytes / 2); // half of an even number of bytes
    const entry = known ?? this.#draft(owner, system ?? 0);
    const refusal = this.#refusalOf(entry, owner, Buffer.byteLength(text));
    const systemText = entry.systemBytes === 0 ? null : 's'.repeat(entry.systemBytes);
    const take = () => this.#harness.store.turn(entry.id, owner, systemText, Buffer.byteLength(text));
    if (refusal !== null) return equal(failureOf(take)?.code, refusal);
    const turn = { turn: take(), of: entry, text };
    turn.turn.openTurn();
    if (entry.state === 'draft') this.#all.push(entry);
    entry.line.push(turn);
    this.#turns.push(turn);
  }

  #refusalOf(entry: ExpectedConversation, owner: ClientText, bytes: number): string | null {
    if (entry.state === 'removed' || entry.owner !== owner) return 'validation_error';
    if (entry.line.length === 0 && this.#inUse.length >= limits.maxConversations) return 'concurrency_limited';
    const promised = entry.line.reduce((sum, { text }) => sum + Buffer.byteLength(text), bytesOf(entry));
    return promised + bytes > limits.maxBytesEach ? 'validation_error' : null;
  }

  #draft(owner: ClientText, systemBytes: number): ExpectedConversation {
    return { id: null, owner, systemBytes, texts: [], activeMs: 0, line: [], state: 'draft' };
  }

  #commit(turn: ExpectedTurn | undefined, answerLength: number): void {
    if (turn === undefined) return;
    const { of, text } = turn;
    const answer = 'a'.repeat(answerLength);
    const told: ConversationSnapshot = turn.turn.commit(text, answer, 2);
    of.texts.push(text, answer);
    of.activeMs = this.#harness.clock.monotonicMs();
    of.id = told.id;
    equal(told.messageCount, of.texts.length);
    if (of.state === 'draft') this.#created++;
    if (of.state !== 'removed') {
      of.state = 'kept';
      this.#kept = [...this.#kept.filter((other) => other !== of), of];
      this.#makeRoom();
    }
    this.#close(turn); // like a job: nothing happens in between
  }

  #close(turn: ExpectedTurn | undefined): void {
    if (turn === undefined) return;
    turn.turn[Symbol.dispose]();
    turn.of.line = turn.of.line.filter((other) => other !== turn);
    this.#turns = this.#turns.filter((other) => other !== turn);
    if (turn.of.line.length === 0 && turn.of.state !== 'removed') this.#makeRoom();
  }

  #look(entry: ExpectedConversation | undefined): void {
    if (entry?.id == null) return;
    if (entry.line.length === 0 && this.#hasExpired(entry)) this.#drop(entry);
    equal(this.#harness.has(entry.id, entry.owner), entry.state === 'kept');
    const running = entry.line[0]?.turn;
    if (running !== undefined)
      deepEqual(
        running.history.map(({ text }) => text),
        entry.texts,
      );
  }

  #remove(entry: ExpectedConversation | undefined, isOwner: boolean): void {
    if (entry?.id == null) return;
    const { id } = entry;
    if (isOwner && entry.line.length === 0 && this.#hasExpired(entry)) this.#drop(entry);
    const failure = failureOf(() => this.#harness.store.removeConversation(id, ownerOf(entry, isOwner)));
    const isThere = entry.state === 'kept' && isOwner;
    equal(failure?.code ?? null, isThere ? null : 'not_found');
    if (isThere) this.#drop(entry);
  }

  #fork(origin: ExpectedConversation | undefined, { isOwner, messages }: Extract<StoreStep, { type: 'fork' }>): void {
    if (origin?.id == null) return;
    const { id, systemBytes } = origin;
    this.#expire();
    const owner = ownerOf(origin, isOwner);
    const count = messages ?? origin.texts.length;
    const isMade = this.#forkRefusalOf(origin, isOwner, count) === null;
    const fork = { ...this.#draft(owner, systemBytes), texts: origin.texts.slice(0, count) };
    let made: ConversationSnapshot | null = null;
    const failure = failureOf(() => {
      made = this.#harness.fork(id, owner, messages);
    });
    if (!isMade) return equal(failure?.code, this.#forkRefusalOf(origin, isOwner, count));
    const { id: forkId = this.#harness.removedIds.at(-1) ?? '' } = (made ?? {}) as Partial<ConversationSnapshot>;
    Object.assign(fork, { id: forkId, activeMs: this.#harness.clock.monotonicMs(), state: 'kept' });
    this.#all.push(fork);
    this.#kept.push(fork);
    this.#created++;
    this.#makeRoom();
    equal(failure?.code ?? 'kept', fork.state === 'kept' ? 'kept' : 'concurrency_limited');
  }

  #forkRefusalOf(origin: ExpectedConversation, isOwner: boolean, count: number): string | null {
    if (origin.state !== 'kept' || !isOwner) return 'not_found';
    if (count % 2 !== 0 || count > origin.texts.length) return 'validation_error';
    return this.#inUse.length >= limits.maxConversations ? 'concurrency_limited' : null;
  }

  /** Expects that all pages together are the list. */
  #list(owner: ClientText, limit: number): void {
    this.#expire();
    const listed: string[] = [];
    for (let before: number | null = null; ; ) {
      const { conversations, next } = this.#harness.store.listConversations(owner, before, limit);
      listed.push(...conversations.map(({ id }) => id));
      if (next === null) break;
      before = next;
    }
    const own = this.#kept.filter((entry) => entry.owner === owner);
    deepEqual(listed, own.map(({ id }) => id).reverse());
  }

  #expire(): void {
    for (const entry of [...this.#kept]) if (entry.line.length === 0 && this.#hasExpired(entry)) this.#drop(entry);
  }

  #hasExpired({ activeMs, state }: ExpectedConversation): boolean {
    return state === 'kept' && this.#harness.clock.monotonicMs() - activeMs >= ttlMs;
  }

  /** Removes conversations. If several are equally suitable, the store may choose. */
  #makeRoom(): void {
    while (this.#kept.length > limits.maxConversations || allBytes(this.#kept) > limits.maxBytes) {
      const mayGo = this.#mayGo();
      if (mayGo.length === 0) return;
      const gone = mayGo.find(({ id }) => id === this.#harness.removedIds[this.#removed]);
      expect(mayGo).toContain(gone);
      this.#drop(gone as ExpectedConversation);
    }
  }

  /**
   * Returns the conversations that may be removed: the least recently active idle one of each owner furthest beyond its
   * share; if no owner is beyond it, the least recently active idle one of all.
   */
  #mayGo(): ExpectedConversation[] {
    const idle = this.#kept.filter(({ line }) => line.length === 0);
    const firstOnes = owners.flatMap((owner) => idle.find((entry) => entry.owner === owner) ?? []);
    const beyond = firstOnes.filter(({ owner }) => this.#excess(owner) > 1);
    const most = Math.max(...beyond.map(({ owner }) => this.#excess(owner)));
    return beyond.length === 0 ? idle.slice(0, 1) : beyond.filter(({ owner }) => this.#excess(owner) === most);
  }

  #excess(owner: ClientText): number {
    const own = this.#kept.filter((entry) => entry.owner === owner);
    return Math.max(own.length / share.conversations, allBytes(own) / share.bytes);
  }

  #drop(entry: ExpectedConversation): void {
    entry.state = 'removed';
    this.#removed++;
    this.#kept = this.#kept.filter((other) => other !== entry);
  }
}

function bytesOf({ systemBytes, texts }: ExpectedConversation): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), systemBytes);
}

function allBytes(entries: readonly ExpectedConversation[]): number {
  return entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
}

function ownerOf({ owner }: ExpectedConversation, isOwner: boolean): ClientText {
  return isOwner ? owner : 'key mallory';
}

it('The conversation store matches simple lists after any sequence of operations', async () => {
  await playAll<StoreStep>(steps, () => new StorePlayer());
}, 3_600_000);
