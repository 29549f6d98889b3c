import { type LaunchOptions, plainLaunch } from '../../../src/primary/cli/contract/adapter.js';
import { type CliLease, ProcessPool } from '../../../src/primary/cli/pool/process-pool.js';
import { LaunchHistory } from '../../../src/primary/cli/pool/standby-policy.js';
import type { CliLimits, CliProcess } from '../../../src/primary/cli/process/cli-process.js';
import type { SpawnRequest } from '../../../src/primary/cli/process/launcher.js';
import type { KnownProgram } from '../../../src/primary/cli/process/program.js';
import type { Tenant } from '../../../src/primary/cli/process/renewal.js';
import type { ProcessTree } from '../../../src/primary/cli/terminate/process-tree.js';
import type { ClientText } from '../../../src/shared/client.js';
import { FakeClock } from '../basics/fake-clock.js';
import { settled } from '../basics/settled.js';
import {
  lineVersion,
  noCallbacks,
  noLimits,
  noSecrets,
  ScriptedTree,
  silentObserver,
  TextBook,
  tenantOf,
  turnOf,
} from './scripted-cli.js';

export const usualLaunch: LaunchOptions = plainLaunch(null);
const never = new AbortController().signal;

export function withSystem(system: string): LaunchOptions {
  return { ...plainLaunch(null), system };
}

export interface PoolOptions {
  readonly maxSessions?: number;
  readonly idleMs?: number;
  readonly limits?: Partial<CliLimits>;
  readonly mayRenew?: boolean;
}

/** Real process pool with scripted programs. */
export class PoolHouse {
  readonly clock = new FakeClock();
  readonly history = new LaunchHistory(usualLaunch);
  readonly pool: ProcessPool;
  /** Trees of the started programs, in order. */
  readonly trees: ScriptedTree[] = [];
  /** Program and arguments of each start. */
  readonly orders: { readonly program: string; readonly args: readonly string[] }[] = [];
  readonly counted = { hit: 0, miss: 0, live: 0, replay: 0 };
  readonly startups: number[] = [];
  /** Conversations that queued jobs will continue. */
  readonly awaited = new Set<string>();
  isStopped = false;
  hasMemory = true;
  /** Awaited at each start; an error makes the start fail. */
  onStart: () => Promise<void> = async () => {};
  /** Called when a process changes its state. */
  onChange: () => void = () => {};
  /** Identity of the program's file; a change makes all keys differ. */
  file = 'v1';
  readonly #treeOf = new Map<CliProcess, ScriptedTree>();

  constructor({ maxSessions = 4, idleMs = 10_000, limits = {}, mayRenew = true }: PoolOptions = {}) {
    const { clock, history } = this;
    const launcher = {
      launch: (order: SpawnRequest, signal?: AbortSignal) => this.#launch(order, signal),
      stop: () => {
        this.isStopped = true;
      },
    };
    const observer = {
      ...silentObserver,
      startedUp: (ms: number) => void this.startups.push(ms),
      standbyTaken: (result: 'hit' | 'miss') => void this.counted[result]++,
      liveSessionTaken: (result: 'hit' | 'replay') => void this.counted[result === 'hit' ? 'live' : 'replay']++,
    };
    const settings = { maxSessions, idleMs, mayRenew, limits: { ...noLimits, ...limits } };
    this.pool = new ProcessPool(settings, {
      ...{
        launcher,
        history,
        clock,
        observer,
        redactor: noSecrets,
        callbacks: noCallbacks,
        awaited: () => this.awaited,
        hasMemory: () => this.hasMemory,
      },
      onChange: () => this.onChange(),
    });
  }

  get program(): KnownProgram {
    const keys: KnownProgram['keys'] = new WeakMap();
    return { path: '/opt/model', leading: ['--lead'], programVersion: lineVersion(), fingerprint: this.file, keys };
  }

  acquire(id?: string, messageCount = 2, launch = usualLaunch, signal = never): Promise<CliLease> {
    const conversation = id === undefined ? null : { id, messageCount };
    return this.pool.acquire(this.program, launch, conversation, signal);
  }

  /** Acquires a process for a question of this client. */
  acquireFor(client: ClientText, more: Partial<Tenant> = {}, launch = usualLaunch): Promise<CliLease> {
    return this.pool.acquire(this.program, launch, null, never, tenantOf(client, more));
  }

  /** Runs a question of this client to its end. If `proof` is the empty text, its process is not renewed in time. */
  async question(client: ClientText, { proof = 'end\n', ...more }: Partial<Tenant> & { readonly proof?: string } = {}) {
    const lease = await this.acquireFor(client, more);
    const tree = await this.answer(lease);
    const released = lease.release(null);
    await settled();
    if (proof === '') await this.clock.advance(1000);
    else if (!tree.stdout.destroyed) await tree.say(proof);
    await released;
    return { tree, origin: lease.origin };
  }

  startAhead(launch = usualLaunch): Promise<CliProcess> {
    return this.pool.startAhead(this.program, launch);
  }

  /** Returns the scripted program of a started process. */
  treeOf({ process }: { readonly process: CliProcess }): ScriptedTree {
    const tree = this.#treeOf.get(process);
    if (tree === undefined) throw new Error('this process was not started here');
    return tree;
  }

  /** Runs a whole turn after `messageCount` messages. With an id, the process stays with that conversation. */
  async turn(id?: string, messageCount = 0): Promise<ScriptedTree> {
    const lease = await this.acquire(messageCount === 0 ? undefined : id, messageCount);
    const tree = await this.answer(lease);
    await lease.release(id === undefined ? null : { id, messageCount: messageCount + 2 });
    return tree;
  }

  async answer(lease: CliLease): Promise<ScriptedTree> {
    const tree = this.treeOf(lease);
    const turn = { ...turnOf('hello'), history: [{ role: 'user' as const, text: 'earlier' }] };
    const end = lease.turn(turn, new TextBook(), never);
    await tree.say('end\n');
    await end;
    return tree;
  }

  async #launch(order: SpawnRequest, signal?: AbortSignal): Promise<ProcessTree> {
    const tree = new ScriptedTree();
    // Undefined during a consultation.
    const fresh = this.pool.processes.find(([process]) => !this.#treeOf.has(process));
    if (fresh !== undefined) this.#treeOf.set(fresh[0], tree);
    await this.onStart();
    signal?.throwIfAborted();
    this.trees.push(tree);
    this.orders.push({ program: order.program, args: order.plan('/run/system').args });
    return tree as unknown as ProcessTree;
  }
}
