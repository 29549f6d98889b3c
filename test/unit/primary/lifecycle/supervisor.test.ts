import { type ShutdownSteps, Supervisor } from '../../../../src/primary/lifecycle/supervisor.js';
import { withResolvers } from '../../../../src/shared/async.js';
import type { Phase, ServiceExit } from '../../../../src/shared/phase.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { settled } from '../../../support/basics/settled.js';

/** A service with this much work, which records the steps of its shutdown. */
class Harness implements ShutdownSteps {
  readonly clock = new FakeClock();
  readonly log = new LogBook();
  readonly story: string[] = [];
  readonly reasons: Error[] = [];
  readonly limitsMs: number[] = [];
  sendsAll = true;
  sendsForEver = false;
  readonly #sendingCut = withResolvers();
  readonly supervisor: Supervisor;
  #running: number;
  #endsWhenCut: boolean;
  readonly #idle = withResolvers();

  constructor({ running = 0, endsWhenCut = true, drainMs = 30_000 } = {}) {
    this.#running = running;
    this.#endsWhenCut = endsWhenCut;
    this.supervisor = new Supervisor(drainMs, this.clock, this.log, this);
  }

  /** Completes the retirement of workers, which first answer their open requests. */
  retire: () => void = () => {};

  retireWorkers(): Promise<void> {
    this.story.push('retire workers');
    return new Promise((resolve) => {
      this.retire = resolve;
    });
  }

  onPhase(phase: Phase): void {
    this.story.push(phase);
  }

  exit(code: number): void {
    this.story.push(`exit ${code}`);
  }

  async idle(): Promise<void> {
    if (this.#running > 0) await this.#idle.promise;
  }

  counts() {
    return { running: this.#running, queued: 0 };
  }

  cutAll(reason: Error): void {
    this.story.push('cut');
    this.reasons.push(reason);
    if (this.#endsWhenCut) this.finishWork();
  }

  async stopWorkers(limitMs: number): Promise<boolean> {
    this.story.push('stop workers');
    this.limitsMs.push(limitMs);
    if (limitMs === 0) this.#sendingCut.resolve();
    if (this.sendsForEver) await this.#sendingCut.promise;
    await settled();
    return this.sendsAll && !this.sendsForEver;
  }

  async endProcesses(): Promise<void> {
    this.story.push('end processes');
  }

  finishWork(): void {
    this.#running = 0;
    this.#idle.resolve();
  }

  /** Lets one event happen: a signal, a failure with its exit code, the end of the work, or a number of milliseconds. */
  async play(event: string): Promise<void> {
    if (event.startsWith('SIG')) void this.supervisor.terminate(event as NodeJS.Signals);
    else if (event.startsWith('fail')) void this.supervisor.fail(Number(event.slice(4)) as ServiceExit);
    else if (event === 'finish') this.finishWork();
    else if (event === 'settle') await settled();
    else await this.clock.advance(Number(event));
  }

  /** Runs all pending work. Returns the steps so far. */
  async soFar(): Promise<string[]> {
    await settled(40);
    return this.story;
  }
}

const cutSteps = ['draining', 'cut', 'end processes', 'stop workers', 'stopped'];
const cut = [...cutSteps, 'exit 1'];
const clean = ['draining', 'end processes', 'stop workers', 'stopped', 'exit 0'];

describe('The supervisor', () => {
  it('is starting until a worker listens, then it is ready, once', () => {
    const harness = new Harness();
    expect(harness.supervisor.phase).toBe('starting');
    expect([harness.supervisor.becomeReady(), harness.supervisor.becomeReady()]).toEqual([true, false]);
    expect([harness.supervisor.phase, harness.supervisor.drainEndsAt]).toEqual(['ready', null]);
    expect(harness.story).toEqual(['ready']);
  });

  it('lets work finish before it exits with 0', async () => {
    const harness = new Harness({ running: 3 });
    harness.supervisor.becomeReady();
    void harness.supervisor.terminate('SIGTERM');
    expect(harness.supervisor.phase).toBe('draining');
    expect(harness.supervisor.drainEndsAt).toBe(harness.clock.now() + 30_000);
    await harness.clock.advance(29_999);
    expect(await harness.soFar()).toEqual(['ready', 'draining']);
    harness.finishWork();
    expect(await harness.soFar()).toEqual(['ready', ...clean]);
    expect(harness.log.entries).toEqual([
      { level: 'info', event: 'shutdown_start', fields: { signal: 'SIGTERM', running: 3, queued: 0 } },
      { level: 'info', event: 'shutdown_complete', fields: { running: 0, queued: 0 } },
    ]);
  });

  it('reports how much of the drain is left, in whole seconds', async () => {
    const harness = new Harness({ running: 1, drainMs: 400_000, endsWhenCut: false });
    void harness.supervisor.terminate('SIGTERM');
    const left: number[] = [];
    for (const ms of [0, 150_500, 249_000, 10_000]) {
      await harness.clock.advance(ms);
      left.push(harness.supervisor.drainSecondsLeft);
    }
    expect(left).toEqual([300, 250, 1, 1]);
  });

  describe('during a handover to a successor', () => {
    it('stays ready until the workers have finished open requests, then drains for the rest of the time', async () => {
      const harness = new Harness({ running: 1 });
      harness.supervisor.becomeReady();
      void harness.supervisor.handOver('SIGUSR2');
      await harness.clock.advance(10_000);
      expect(await harness.soFar()).toEqual(['ready', 'retire workers']);
      expect([harness.supervisor.phase, harness.supervisor.drainEndsAt]).toEqual(['ready', null]);
      harness.retire();
      expect(await harness.soFar()).toEqual(['ready', 'retire workers', 'draining']);
      expect(harness.supervisor.drainEndsAt).toBe(harness.clock.now() + 20_000);
      harness.finishWork();
      expect(await harness.soFar()).toEqual(['ready', 'retire workers', ...clean]);
      expect(harness.log.entries.slice(0, 2)).toEqual([
        { level: 'info', event: 'handing_over', fields: { signal: 'SIGUSR2', running: 1, queued: 0 } },
        { level: 'info', event: 'shutdown_start', fields: { signal: 'SIGUSR2', running: 1, queued: 0 } },
      ]);
    });

    it('cuts open requests when the drain time is over', async () => {
      const harness = new Harness({ running: 1 });
      harness.supervisor.becomeReady();
      void harness.supervisor.handOver('SIGUSR2');
      await harness.clock.advance(29_999);
      expect(await harness.soFar()).toEqual(['ready', 'retire workers']);
      await harness.clock.advance(1);
      await harness.clock.advance(0);
      expect(await harness.soFar()).toEqual(['ready', 'retire workers', ...cut]);
    });

    it('begins the drain at a further signal, and only once', async () => {
      const harness = new Harness({ running: 1 });
      harness.supervisor.becomeReady();
      void harness.supervisor.handOver('SIGUSR2');
      await harness.clock.advance(1000);
      void harness.supervisor.handOver('SIGUSR2');
      expect(await harness.soFar()).toEqual(['ready', 'retire workers', 'draining']);
      harness.retire();
      harness.finishWork();
      expect(await harness.soFar()).toEqual(['ready', 'retire workers', ...clean]);
    });

    it('drains immediately if no worker has listened yet', async () => {
      const harness = new Harness();
      void harness.supervisor.handOver('SIGUSR2');
      expect(await harness.soFar()).toEqual(clean);
    });
  });

  it('has no time left after a second signal', async () => {
    const harness = new Harness({ running: 1, endsWhenCut: false });
    void harness.supervisor.terminate('SIGTERM');
    void harness.supervisor.terminate('SIGINT');
    await harness.soFar();
    expect(harness.supervisor.drainSecondsLeft).toBe(1);
  });

  it('cuts the remaining work at the drain time-out, and exits with 1', async () => {
    const harness = new Harness({ running: 1 });
    void harness.supervisor.terminate('SIGTERM');
    await harness.clock.advance(30_000);
    expect(await harness.soFar()).toEqual(cut);
    expect(harness.reasons).toEqual([expect.objectContaining({ code: 'shutting_down', retryAfterSeconds: 5 })]);
    expect(harness.log.events).toEqual(['shutdown_start', 'shutdown_timeout']);
    // These jobs were cut; no job runs any more.
    expect(harness.log.entries.at(-1)?.fields).toEqual({ running: 1, queued: 0 });
  });

  it('gives the last answers the rest of the drain time, and logs if that did not suffice', async () => {
    const harness = new Harness({ running: 1 });
    harness.sendsAll = false;
    void harness.supervisor.terminate('SIGTERM');
    await harness.clock.advance(10_000);
    harness.finishWork();
    expect(await harness.soFar()).toEqual(['draining', 'end processes', 'stop workers', 'stopped', 'exit 1']);
    expect(harness.limitsMs).toEqual([20_000]);
    expect(harness.log.events).toEqual(['shutdown_start', 'shutdown_timeout']);
  });

  it('gives them two seconds even if no drain time is left', async () => {
    const harness = new Harness({ running: 1, drainMs: 1000 });
    void harness.supervisor.terminate('SIGTERM');
    await harness.clock.advance(1000);
    expect(await harness.soFar()).toEqual(cut);
    expect(harness.limitsMs).toEqual([2000]);
  });

  it('interrupts the sending of the last answers at a second signal', async () => {
    const harness = new Harness();
    harness.sendsForEver = true;
    void harness.supervisor.terminate('SIGTERM');
    await harness.soFar();
    void harness.supervisor.terminate('SIGINT');
    expect(await harness.soFar()).toEqual([
      'draining',
      'end processes',
      'stop workers',
      'stop workers',
      'stopped',
      'exit 1',
    ]);
    expect(harness.limitsMs).toEqual([30_000, 0]);
  });

  it('remembers a second signal that arrives while processes are being ended', async () => {
    const harness = new Harness();
    const endings: (() => void)[] = [];
    harness.endProcesses = () => new Promise((resolve) => endings.push(resolve));
    void harness.supervisor.terminate('SIGTERM');
    await harness.soFar();
    void harness.supervisor.terminate('SIGINT');
    endings[0]?.();
    expect(await harness.soFar()).toEqual(['draining', 'stop workers', 'stopped', 'exit 0']);
    expect(harness.limitsMs).toEqual([0]);
  });

  it('also drains before it was ready, and is never ready after that', async () => {
    const harness = new Harness();
    const terminated = harness.supervisor.terminate('SIGINT');
    expect(harness.supervisor.becomeReady()).toBe(false);
    await terminated;
    expect(harness.supervisor.becomeReady()).toBe(false);
    expect(harness.story).toEqual(clean);
  });

  it('can fail before it was ready, and announces the drain to its workers', async () => {
    const harness = new Harness();
    const failed = harness.supervisor.fail(69);
    expect([harness.supervisor.phase, harness.supervisor.becomeReady()]).toEqual(['draining', false]);
    await failed;
    expect(harness.story).toEqual(['draining', 'cut', 'end processes', 'stop workers', 'stopped', 'exit 69']);
  });

  it.each<[string, ConstructorParameters<typeof Harness>[0], string, readonly string[]]>([
    ['cuts the remaining work immediately if there is no time to drain', { drainMs: 0 }, 'SIGTERM 0', cut],
    ['waits for the end of the cut work', { endsWhenCut: false }, 'SIGTERM 30000 14000', ['draining', 'cut']],
    ['stops the workers after the cut work has ended', { endsWhenCut: false }, 'SIGTERM 30000 14000 finish', cut],
    ['does not wait forever for the cut work', { endsWhenCut: false }, 'SIGTERM 30000 15000', cut],
    ['cuts immediately at the second signal', {}, 'SIGTERM settle SIGINT', cut],
    ['ignores a repeated signal within half a second', {}, 'SIGINT 499 SIGINT', ['draining']],
    ['cuts at a signal that comes later', {}, 'SIGINT 499 SIGINT 1 SIGINT', cut],
    ['exits once, however many signals arrive', {}, 'SIGTERM SIGTERM SIGTERM settle SIGTERM fail69 100000', cut],
    ['ends at a signal that arrives before anything has started', { running: 0 }, 'SIGTERM', clean],
    ['cuts all work and exits with the given code when it fails', { running: 2 }, 'fail69', [...cutSteps, 'exit 69']],
    [
      'takes no step twice while it fails, whatever signals arrive',
      { endsWhenCut: false },
      'fail69 SIGTERM settle fail70 finish',
      [...cutSteps, 'exit 69'],
    ],
    ['cannot fail once it drains', {}, 'SIGTERM fail69 finish', clean],
  ])('%s', async (_, options, events, steps) => {
    const harness = new Harness({ running: 1, ...options });
    for (const event of events.split(' ')) await harness.play(event);
    expect(await harness.soFar()).toEqual(steps);
    expect(harness.supervisor.phase === 'stopped').toBe(steps.includes('stopped'));
  });
});
