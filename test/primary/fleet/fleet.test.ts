import cluster, { type Worker } from 'node:cluster';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Fleet } from '../../../src/primary/fleet/fleet.js';
import type { SharedHandlers } from '../../../src/primary/fleet/worker-peer.js';
import { FakeClock } from '../../support/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/folder.js';
import { LogBook } from '../../support/log-book.js';
import { root } from '../../support/sources.js';
import { until } from '../../support/until.js';

const workers = join(root, 'test', 'fixtures', 'workers');
const listens = join(workers, 'listens.js');
const hangs = join(workers, 'hangs.js');
const checkMs = 1000;
const startLimitMs = 15_000;
const silenceLimitMs = 10_000;
const stopLimitMs = 3000;
const killLimitMs = 2000;
/** Before the next start: doubled at each one in vain. */
const firstWaitMs = 100;
const maxWaitMs = 5000;

/** A fleet of one seat, whose workers are real processes and whose time is not. */
class Harness implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new LogBook();
  readonly told: string[] = [];
  readonly fleet: Fleet;
  readonly #folder: TemporaryFolder;

  constructor(folder: TemporaryFolder) {
    this.#folder = folder;
    const tell = (event: string) => () => void this.told.push(event);
    const events = {
      socketOpened: tell('socketOpened'),
      listening: tell('listening'),
      unavailable: tell('unavailable'),
      joined: tell('joined'),
      heard: tell('heard'),
      left: tell('left'),
      restarted: (cause: string) => void this.told.push(`restarted: ${cause}`),
    };
    const settings = { size: 1, maxExchangeMs: 1000, passedFds: [] };
    this.fleet = new Fleet(settings, {} as SharedHandlers, events, this.clock, this.log);
  }

  /** From now on Node reports ENOENT for every worker, as it would where its own program is missing. */
  breakStarts(): void {
    cluster.setupPrimary({ cwd: this.#cwd });
  }

  async mendStarts(): Promise<void> {
    await mkdir(this.#cwd);
  }

  get #workers(): Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }

  get #cwd(): string {
    return join(this.#folder.path, 'missing');
  }

  async untilLogged(event: string, times = 1): Promise<void> {
    await until(() => this.log.events.filter((logged) => logged === event).length >= times, `${times} times ${event}`);
  }

  async untilTold(event: string): Promise<void> {
    await until(() => this.told.includes(event), event);
  }

  /** Of the workers that live, whether or not the fleet still knows them. */
  pids(): number[] {
    return this.#workers.flatMap(({ process }) => process.pid ?? []);
  }

  /** A heartbeat of the worker with this pid, which knows of none itself. */
  beat(pid: number | null | undefined): void {
    const worker = this.#workers.find(({ process }) => process.pid === pid);
    worker?.emit('message', { kind: 'call', id: 1, name: 'heartbeat', request: { text: '{}' } });
  }

  /** From now on no signal of the fleet reaches its workers, as when they wait in the kernel. */
  shield(): void {
    for (const { process } of this.#workers) process.kill = () => true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.pids()) process.kill(pid, 'SIGKILL');
    await this.fleet.stop(2000);
    cluster.setupPrimary({ cwd: undefined });
    await this.#folder[Symbol.asyncDispose]();
  }
}

async function createHarness(): Promise<Harness> {
  return new Harness(await temporaryFolder());
}

describe('a worker that the system can not start', () => {
  it('is tried again until it can be, and stands in the log', async () => {
    await using harness = await createHarness();
    harness.breakStarts();
    harness.fleet.start(listens);
    await harness.untilLogged('worker_start_failed');
    expect(harness.fleet.snapshot()).toEqual([{ id: 1, pid: null, state: 'starting', restarts: 0 }]);
    expect(harness.log.entries).toMatchObject([
      { level: 'error', fields: { worker: 1, error: expect.stringMatching('ENOENT') } },
    ]);
    await harness.clock.advance(firstWaitMs);
    await harness.untilLogged('worker_start_failed', 2);
    await harness.mendStarts();
    await harness.clock.advance(2 * firstWaitMs);
    await harness.untilTold('listening');
    expect(harness.fleet.counts()).toEqual({ starting: 0, ready: 1, stopping: 0 });
    expect(harness.told.filter((event) => event.startsWith('restarted'))).toEqual([
      'restarted: crash',
      'restarted: crash',
    ]);
  });

  it('does not hold up the end of the service', async () => {
    await using harness = await createHarness();
    harness.breakStarts();
    harness.fleet.start(listens);
    await harness.fleet.stop(2000);
    expect(harness.log.events).toEqual(['worker_start_failed']);
  });

  it('fails a reload, and the one that is there stays', async () => {
    await using harness = await createHarness();
    harness.fleet.start(listens);
    await harness.untilTold('listening');
    const [before] = harness.fleet.snapshot();
    harness.breakStarts();
    expect(await harness.fleet.replaceAll()).toBe(false);
    expect(harness.log.events).toEqual(['worker_start_failed', 'reload_failed']);
    expect(harness.fleet.snapshot()).toEqual([before]);
  });

  it('is tried again also where the system refuses at once, and given up after eight tries in vain', async () => {
    await using harness = await createHarness();
    harness.fleet.start('not\0a program');
    for (let tries = 1; tries < 8; tries++) {
      expect(harness.log.events).toHaveLength(tries);
      expect(harness.told).not.toContain('unavailable');
      await harness.clock.advance(Math.min(firstWaitMs * 2 ** (tries - 1), maxWaitMs));
    }
    expect(new Set(harness.log.events)).toEqual(new Set(['worker_start_failed']));
    expect(harness.told.at(-1)).toBe('unavailable');
    expect(harness.pids()).toEqual([]);
  });
});

describe('a worker that hangs while it starts', () => {
  it('is killed after fifteen seconds, and another one takes its place', async () => {
    await using harness = await createHarness();
    harness.fleet.start(hangs);
    const [first] = harness.pids();
    await harness.clock.advance(startLimitMs);
    expect(harness.log.events).toEqual([]);
    await harness.clock.advance(checkMs);
    await harness.untilLogged('worker_gone');
    expect(harness.log.entries).toMatchObject([
      { event: 'worker_unresponsive', level: 'error' },
      { event: 'worker_gone', fields: { signal: 'SIGKILL' } },
    ]);
    await harness.clock.advance(firstWaitMs);
    expect(harness.told).toEqual(['left', 'restarted: unresponsive']);
    expect(harness.pids()).toEqual([expect.any(Number)]);
    expect(harness.pids()).not.toEqual([first]);
  });

  it('fails a reload, and the one that is there stays', async () => {
    await using harness = await createHarness();
    harness.fleet.start(listens);
    await harness.untilTold('listening');
    const [before] = harness.fleet.snapshot();
    cluster.setupPrimary({ exec: hangs });
    const replaced = harness.fleet.replaceAll();
    await harness.clock.advance(silenceLimitMs);
    harness.beat(before?.pid);
    await harness.clock.advance(startLimitMs - silenceLimitMs + checkMs);
    expect(await replaced).toBe(false);
    expect(harness.log.events).toEqual(['worker_unresponsive', 'reload_failed']);
    expect(harness.fleet.snapshot()).toEqual([before]);
  });
});

describe('a worker that dies after it was replaced, and before it has answered', () => {
  it('stands in the log, and nobody takes its place', async () => {
    await using harness = await createHarness();
    harness.fleet.start(listens);
    await harness.untilTold('listening');
    const [old = 0] = harness.pids();
    expect(await harness.fleet.replaceAll()).toBe(true);
    process.kill(old, 'SIGKILL');
    await harness.untilLogged('worker_gone');
    expect(harness.log.entries.at(-1)).toMatchObject({ level: 'warn', fields: { worker: 1, signal: 'SIGKILL' } });
    expect(harness.fleet.snapshot()).toMatchObject([{ id: 1, state: 'ready', restarts: 1 }]);
  });
});

describe('a worker that no force ends', () => {
  it('is no longer waited for two seconds after it was killed, and stands in the log', async () => {
    await using harness = await createHarness();
    harness.fleet.start(hangs);
    harness.shield();
    let hasStopped = false;
    const stopped = harness.fleet.stop(2000).then(() => (hasStopped = true));
    await harness.clock.advance(stopLimitMs + killLimitMs - 1);
    expect([hasStopped, harness.log.events]).toEqual([false, []]);
    await harness.clock.advance(1);
    await stopped;
    expect(harness.log.events).toEqual(['worker_unresponsive']);
  });
});
