import cluster, { type Worker } from 'node:cluster';
import { join } from 'node:path';
import { Fleet } from '../../src/primary/fleet.js';
import type { SharedHandlers } from '../../src/primary/worker-peer.js';
import { FakeClock } from '../support/fake-clock.js';
import { LogBook } from '../support/log-book.js';
import { root } from '../support/sources.js';

const workers = join(root, 'test', 'fixtures', 'workers');
const hangs = join(workers, 'hangs.js');
const stopLimitMs = 3000;
const killLimitMs = 2000;

/** A fleet of one seat, whose workers are real processes and whose time is not. */
class Harness implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new LogBook();
  readonly told: string[] = [];
  readonly fleet: Fleet;

  constructor() {
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

  get #workers(): Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }

  /** Of the workers that live, whether or not the fleet still knows them. */
  pids(): number[] {
    return this.#workers.flatMap(({ process }) => process.pid ?? []);
  }

  /** From now on no signal of the fleet reaches its workers, as when they wait in the kernel. */
  shield(): void {
    for (const { process } of this.#workers) process.kill = () => true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.pids()) process.kill(pid, 'SIGKILL');
    await this.fleet.stop(2000);
  }
}

describe('a worker that no force ends', () => {
  it('is no longer waited for two seconds after it was killed, and stands in the log', async () => {
    await using harness = new Harness();
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
