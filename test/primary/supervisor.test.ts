import { type Charges, Supervisor } from '../../src/primary/supervisor.js';
import type { Phase } from '../../src/shared/phase.js';
import { FakeClock } from '../support/fake-clock.js';
import { LogBook } from '../support/log-book.js';
import { settled } from '../support/settled.js';

/** A house with this much to do; writes down what it is told. */
class House implements Charges {
  readonly clock = new FakeClock();
  readonly log = new LogBook();
  readonly story: string[] = [];
  readonly reasons: Error[] = [];
  readonly limitsMs: number[] = [];
  sendsAll = true;
  sendsForEver = false;
  #cutSending: () => void = () => {};
  readonly #sendingCut = new Promise<void>((resolve) => {
    this.#cutSending = resolve;
  });
  readonly supervisor: Supervisor;
  #running: number;
  #endsWhenCut: boolean;
  #finish: () => void = () => {};
  readonly #idle = new Promise<void>((resolve) => {
    this.#finish = resolve;
  });

  constructor({ running = 0, endsWhenCut = true, drainMs = 30_000 } = {}) {
    this.#running = running;
    this.#endsWhenCut = endsWhenCut;
    this.supervisor = new Supervisor(this, drainMs, this.clock, this.log, (code) => this.story.push(`exit ${code}`));
  }

  announce(phase: Phase): void {
    this.story.push(`announce ${phase}`);
  }

  async idle(): Promise<void> {
    if (this.#running > 0) await this.#idle;
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
    if (limitMs === 0) this.#cutSending();
    if (this.sendsForEver) await this.#sendingCut;
    await settled();
    return this.sendsAll && !this.sendsForEver;
  }

  async endProcesses(): Promise<void> {
    this.story.push('end processes');
  }

  finishWork(): void {
    this.#running = 0;
    this.#finish();
  }

  /** Lets everything happen that happens by itself, and tells the story so far. */
  async soFar(): Promise<string[]> {
    await settled(40);
    return this.story;
  }
}

describe('the supervisor', () => {
  it('is ready once, and says so once', () => {
    const house = new House();
    expect(house.supervisor.phase).toBe('starting');
    expect([house.supervisor.becomeReady(), house.supervisor.becomeReady()]).toEqual([true, false]);
    expect(house.supervisor.phase).toBe('ready');
    expect(house.story).toEqual(['announce ready']);
  });

  it('exits with 0 when nothing is left to do', async () => {
    const house = new House();
    house.supervisor.becomeReady();
    await house.supervisor.terminate('SIGTERM');
    expect(house.story).toEqual(['announce ready', 'announce draining', 'end processes', 'stop workers', 'exit 0']);
    expect(house.supervisor.phase).toBe('stopped');
  });

  it('lets work finish before it exits with 0', async () => {
    const house = new House({ running: 3 });
    house.supervisor.becomeReady();
    void house.supervisor.terminate('SIGTERM');
    expect(house.supervisor.phase).toBe('draining');
    await house.clock.advance(29_999);
    expect(await house.soFar()).toEqual(['announce ready', 'announce draining']);
    house.finishWork();
    expect(await house.soFar()).toEqual([
      'announce ready',
      'announce draining',
      'end processes',
      'stop workers',
      'exit 0',
    ]);
    expect(house.log.entries).toEqual([
      { level: 'info', event: 'shutdown_start', fields: { signal: 'SIGTERM', running: 3, queued: 0 } },
      { level: 'info', event: 'shutdown_complete', fields: { running: 0, queued: 0 } },
    ]);
  });

  it('cuts what is left at the drain time-out, and exits with 1', async () => {
    const house = new House({ running: 1 });
    void house.supervisor.terminate('SIGTERM');
    await house.clock.advance(30_000);
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
    expect(house.reasons).toEqual([expect.objectContaining({ code: 'shutting_down', retryAfterSeconds: 5 })]);
    expect(house.log.events).toEqual(['shutdown_start', 'shutdown_timeout']);
  });

  it('cuts at once what is left where there is no time to drain', async () => {
    const house = new House({ running: 1, drainMs: 0 });
    void house.supervisor.terminate('SIGTERM');
    await house.clock.advance(0);
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
  });

  it('stops the workers only after what was cut has ended', async () => {
    const house = new House({ running: 1, endsWhenCut: false });
    void house.supervisor.terminate('SIGTERM');
    await house.clock.advance(30_000);
    await house.clock.advance(14_000);
    expect(await house.soFar()).toEqual(['announce draining', 'cut']);
    house.finishWork();
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
  });

  it('does not wait for ever for what was cut', async () => {
    const house = new House({ running: 1, endsWhenCut: false });
    void house.supervisor.terminate('SIGTERM');
    await house.clock.advance(30_000);
    await house.clock.advance(15_000);
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
  });

  it('cuts at once at the second signal', async () => {
    const house = new House({ running: 1 });
    void house.supervisor.terminate('SIGTERM');
    await settled();
    void house.supervisor.terminate('SIGINT');
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
    expect(house.clock.monotonicMs()).toBe(0);
  });

  it('takes the same signal twice in half a second for one', async () => {
    const house = new House({ running: 1 });
    void house.supervisor.terminate('SIGINT');
    await house.clock.advance(499);
    void house.supervisor.terminate('SIGINT');
    expect(await house.soFar()).toEqual(['announce draining']);
    await house.clock.advance(1);
    void house.supervisor.terminate('SIGINT');
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
  });

  it('gives the last answers what is left of the drain to be sent, and tells when that was not enough', async () => {
    const house = new House({ running: 1 });
    house.sendsAll = false;
    void house.supervisor.terminate('SIGTERM');
    await house.clock.advance(10_000);
    house.finishWork();
    expect(await house.soFar()).toEqual(['announce draining', 'end processes', 'stop workers', 'exit 1']);
    expect(house.limitsMs).toEqual([20_000]);
    expect(house.log.events).toEqual(['shutdown_start', 'shutdown_timeout']);
  });

  it('gives them two seconds even where nothing is left of the drain', async () => {
    const house = new House({ running: 1, drainMs: 1000 });
    void house.supervisor.terminate('SIGTERM');
    await house.clock.advance(1000);
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
    expect(house.limitsMs).toEqual([2000]);
  });

  it('cuts the sending of the last answers short at a second signal', async () => {
    const house = new House();
    house.sendsForEver = true;
    void house.supervisor.terminate('SIGTERM');
    await house.soFar();
    void house.supervisor.terminate('SIGINT');
    expect(await house.soFar()).toEqual([
      'announce draining',
      'end processes',
      'stop workers',
      'stop workers',
      'exit 1',
    ]);
    expect(house.limitsMs).toEqual([30_000, 0]);
  });

  it('remembers a second signal that comes while processes are being ended', async () => {
    const house = new House();
    const endings: (() => void)[] = [];
    house.endProcesses = () => new Promise((resolve) => endings.push(resolve));
    void house.supervisor.terminate('SIGTERM');
    await house.soFar();
    void house.supervisor.terminate('SIGINT');
    endings[0]?.();
    expect(await house.soFar()).toEqual(['announce draining', 'stop workers', 'exit 0']);
    expect(house.limitsMs).toEqual([0]);
  });

  it('exits once, however many signals come', async () => {
    const house = new House({ running: 1 });
    for (let times = 0; times < 5; times++) void house.supervisor.terminate('SIGTERM');
    await house.soFar();
    await house.supervisor.terminate('SIGTERM');
    await house.supervisor.fail(69);
    await house.clock.advance(100_000);
    expect(await house.soFar()).toEqual(['announce draining', 'cut', 'end processes', 'stop workers', 'exit 1']);
  });

  it('drains also before it was ready, and is never ready after that', async () => {
    const house = new House();
    const terminated = house.supervisor.terminate('SIGINT');
    expect(house.supervisor.becomeReady()).toBe(false);
    await terminated;
    expect(house.supervisor.becomeReady()).toBe(false);
    expect(house.story).toEqual(['announce draining', 'end processes', 'stop workers', 'exit 0']);
  });

  it('cuts all work and exits with the given code when nothing can be served', async () => {
    const house = new House({ running: 2 });
    await house.supervisor.fail(69);
    expect(house.story).toEqual(['cut', 'end processes', 'stop workers', 'exit 69']);
    expect(house.supervisor.phase).toBe('stopped');
  });

  it('does not fail any more once it drains', async () => {
    const house = new House({ running: 1 });
    void house.supervisor.terminate('SIGTERM');
    await house.supervisor.fail(69);
    house.finishWork();
    expect(await house.soFar()).toEqual(['announce draining', 'end processes', 'stop workers', 'exit 0']);
  });
});
