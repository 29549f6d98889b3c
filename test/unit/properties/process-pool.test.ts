import { deepEqual, equal, ok } from 'node:assert/strict';
import { array, boolean, constant, constantFrom, nat, oneof, option, record } from 'fast-check';
import type { CliLease } from '../../../src/primary/cli/pool/process-pool.js';
import type { CliProcess } from '../../../src/primary/cli/process/cli-process.js';
import { cancelled, RelayError } from '../../../src/shared/errors.js';
import { PoolHouse, usualLaunch, withSystem } from '../../support/agents/pool-house.js';
import { type ScriptedTree, TextBook, turnOf } from '../../support/agents/scripted-cli.js';
import { type Player, pick, playAll } from '../../support/basics/properties.js';
import { settled } from '../../support/basics/settled.js';

const maxSessions = 2;
const launches = [usualLaunch, withSystem('Be brief.')];

type PoolStep =
  | {
      readonly type: 'acquire';
      readonly conversation: number | null;
      readonly launch: number;
      readonly isBehind: boolean;
    }
  | { readonly type: 'whole-turn'; readonly of: number }
  | { readonly type: 'acquire-late' | 'start-ahead'; readonly launch: number }
  | {
      readonly type:
        | 'answer'
        | 'fail'
        | 'cancel'
        | 'end'
        | 'keep'
        | 'die'
        | 'die-unnoticed'
        | 'chatter'
        | 'linger'
        | 'vanish'
        | 'forget';
      readonly which: number;
    }
  | { readonly type: 'flush' | 'miss-start' | 'new-file' }
  | { readonly type: 'pass'; readonly ms: number };

const steps = array(
  oneof(
    {
      weight: 5,
      arbitrary: record({
        type: constant('acquire' as const),
        conversation: option(nat(3)),
        launch: nat(1),
        isBehind: boolean(),
      }),
    },
    { weight: 4, arbitrary: record({ type: constant('whole-turn' as const), of: nat(3) }) },
    record({ type: constantFrom('acquire-late', 'start-ahead'), launch: nat(1) }),
    { weight: 6, arbitrary: record({ type: constantFrom('answer', 'keep'), which: nat(5) }) },
    {
      weight: 5,
      arbitrary: record({
        type: constantFrom('fail', 'cancel', 'end', 'die', 'die-unnoticed', 'chatter', 'linger', 'vanish', 'forget'),
        which: nat(9),
      }),
    },
    record({ type: constantFrom('flush', 'miss-start', 'new-file') }),
    record({ type: constant('pass' as const), ms: constantFrom(100, 1000, 10_000) }),
  ),
  { maxLength: 30, size: 'max' },
);

/** A process in use by one job. */
interface HeldLease {
  readonly lease: CliLease;
  /** null for a job without a conversation. */
  readonly conversation: string | null;
  readonly caller: AbortController;
  isInTurn: boolean;
}

/** Runs steps on a pool, and computes the expected owner of each process. */
class PoolPlayer implements Player<PoolStep> {
  readonly #house = new PoolHouse({ maxSessions });
  #held: HeldLease[] = [];
  readonly #owners = new Map<CliProcess, string>();
  /** Number of messages of each conversation. */
  readonly #counts = new Map<string, number>();
  readonly #lingering: (() => void)[] = [];
  #jobs = 0;

  async perform(step: PoolStep): Promise<void> {
    if (step.type === 'acquire') await this.#acquire(step);
    else if (step.type === 'whole-turn') await this.#wholeTurn(step.of);
    else if ('launch' in step) this.#startFor(step.type, pick(launches, step.launch) ?? usualLaunch);
    else if (step.type === 'pass') await this.#pass(step.ms);
    else if ('which' in step) await this.#act(step.type, step.which);
    else if (step.type === 'flush') void this.#house.pool.endIdleProcesses();
    else if (step.type === 'new-file') this.#house.file += 'x';
    else this.#house.onStart = () => Promise.reject(new RelayError('spawn_error', 'no such program'));
  }

  check(): void {
    const { pool, trees } = this.#house;
    const processes = this.#held.map(({ lease }) => lease.process);
    equal(new Set(processes).size, processes.length);
    const sessions = pool.sessions.map(({ process, conversation }) => {
      equal(this.#owners.get(process), conversation?.id);
      expect(processes).not.toContain(process);
      return conversation?.id;
    });
    equal(new Set(sessions).size, sessions.length);
    ok(sessions.length <= maxSessions);
    for (const [process] of pool.processes) {
      if (process.state.name === 'standby') equal(this.#owners.has(process), false);
    }
    const { standby, live, busy, stopping } = pool.counts();
    ok(standby + live + busy + stopping <= pool.processes.length);
    ok(busy <= this.#held.length);
    equal(live, sessions.length);
    equal(
      trees.every(({ ends }) => ends.length <= 1),
      true,
    );
  }

  async finish(): Promise<void> {
    const { pool, trees } = this.#house;
    const closed = pool.closePool();
    for (const { lease } of this.#held) void lease.release(null);
    for (const vanish of this.#lingering.splice(0)) vanish();
    await closed;
    await settled();
    deepEqual(pool.processes, []);
    deepEqual(
      trees.map(({ ends }) => ends.length),
      trees.map(() => 1),
    );
    equal(this.#house.isStopped, true);
  }

  /** Acquires a process. Does nothing for a conversation whose process is in use: it has one turn at a time. */
  async #acquire({ conversation, launch, isBehind }: Extract<PoolStep, { conversation: unknown }>): Promise<void> {
    const id = conversation === null ? null : `conversation ${conversation}`;
    if (this.#held.some((held) => id !== null && held.conversation === id)) return;
    const owner = id ?? `job ${++this.#jobs}`;
    const messageCount = (this.#counts.get(owner) ?? 0) + (isBehind ? 2 : 0);
    const caller = new AbortController();
    const state = id === null || messageCount === 0 ? null : { id, messageCount };
    const { pool, program } = this.#house;
    try {
      const lease = await pool.acquire(program, pick(launches, launch) ?? usualLaunch, state, caller.signal);
      expect([undefined, owner]).toContain(this.#owners.get(lease.process));
      if (lease.origin === 'live') deepEqual([this.#owners.get(lease.process), isBehind], [owner, false]);
      this.#owners.set(lease.process, owner);
      this.#held = [...this.#held, { lease, conversation: id, caller, isInTurn: false }];
    } catch (error) {
      expect(error).toMatchObject({ code: 'spawn_error' });
    }
    this.#house.onStart = async () => {};
  }

  async #wholeTurn(conversation: number): Promise<void> {
    const before = this.#held;
    await this.#acquire({ type: 'acquire', conversation, launch: 0, isBehind: false });
    const held = this.#held.find((other) => !before.includes(other));
    if (held === undefined) return;
    await this.#turn(held, 'answer');
    this.#release(held, true);
  }

  /** Expects that a job whose client has disconnected gets no process. */
  #startFor(type: 'acquire-late' | 'start-ahead', launch: typeof usualLaunch): void {
    const { pool, program } = this.#house;
    const late = AbortSignal.abort(cancelled('gone'));
    const started =
      type === 'start-ahead' ? pool.startAhead(program, launch) : pool.acquire(program, launch, null, late);
    void started.then(
      (got) => 'release' in got && void got.release(null),
      () => {},
    );
  }

  async #pass(ms: number): Promise<void> {
    await this.#house.clock.advance(ms);
    this.#house.pool.endSpentSessions();
  }

  async #act(type: Extract<PoolStep, { which: number }>['type'], which: number): Promise<void> {
    const held = pick(this.#held, which);
    const tree = pick(this.#house.trees, which);
    if (type === 'forget') this.#house.pool.endSessionOf(`conversation ${which % 4}`);
    else if (type === 'vanish') this.#lingering.shift()?.();
    else if (tree !== undefined && type === 'linger') this.#lingering.push(tree.linger());
    else if (tree !== undefined && type === 'die-unnoticed') tree.dieUnnoticed();
    else if (tree !== undefined && type === 'die') await dies(tree);
    else if (tree !== undefined && type === 'chatter') await says(tree, '+late\n');
    else if (held !== undefined && (type === 'end' || type === 'keep')) this.#release(held, type === 'keep');
    else if (held !== undefined) await this.#turn(held, type);
  }

  async #turn(held: HeldLease, type: string): Promise<void> {
    if (held.isInTurn || held.lease.process.state.name !== 'busy') return;
    held.isInTurn = true;
    const tree = this.#house.treeOf(held.lease);
    const turn = held.lease.turn(turnOf('hello'), new TextBook(), held.caller.signal);
    if (type === 'cancel') held.caller.abort(cancelled('gone'));
    else await says(tree, type === 'fail' ? 'fail\n' : 'end\n');
    await turn.catch(() => {});
    held.isInTurn = type === 'fail' || type === 'cancel';
    if (held.conversation !== null && !held.isInTurn) {
      this.#counts.set(held.conversation, (this.#counts.get(held.conversation) ?? 0) + 2);
    }
  }

  #release(held: HeldLease, isKept: boolean): void {
    const { lease, conversation } = held;
    const messageCount = conversation === null ? 0 : (this.#counts.get(conversation) ?? 0);
    this.#held = this.#held.filter((other) => other !== held);
    void lease.release(isKept && conversation !== null && messageCount > 0 ? { id: conversation, messageCount } : null);
  }
}

async function dies(tree: ScriptedTree): Promise<void> {
  if (!tree.stdout.writableEnded && !tree.stdout.destroyed) await tree.exit(1);
}

async function says(tree: ScriptedTree, text: string): Promise<void> {
  if (!tree.stdout.writableEnded && !tree.stdout.destroyed) await tree.say(text);
}

it('The process pool gives each process to one job or one conversation, and leaves none behind', async () => {
  await playAll<PoolStep>(steps, () => new PoolPlayer());
}, 3_600_000);
