import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Systemd, takeHandover } from '../../../../src/primary/lifecycle/systemd.js';
import type { Phase } from '../../../../src/shared/phase.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';

const notify = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_PID: '7', WATCHDOG_USEC: '30000000' };
const listen = { LISTEN_PID: '7', LISTEN_FDS: '2', LISTEN_FDNAMES: 'a:b' };

describe('The variables from systemd', () => {
  it('are removed from the environment, and nothing else is', () => {
    const env = { PATH: '/bin', ...notify, ...listen };
    expect(takeHandover(env, 7)).toEqual({ notifySocket: '/run/notify', watchdogMs: 30_000, passedFds: [3, 4] });
    expect(env).toEqual({ PATH: '/bin' });
  });

  it('are ignored if they were meant for another process, but still removed', () => {
    const env = { ...notify, ...listen };
    expect(takeHandover(env, 8)).toEqual({ notifySocket: '/run/notify', watchdogMs: null, passedFds: [] });
    expect(env).toEqual({});
  });

  it.each([{}, { NOTIFY_SOCKET: '', WATCHDOG_USEC: 'soon', LISTEN_PID: '7', LISTEN_FDS: 'some' }])(
    'are ignored if they are unusable: %j',
    (env) => {
      expect(takeHandover(env, 7)).toEqual({ notifySocket: null, watchdogMs: null, passedFds: [] });
    },
  );
});

/** Notifier that appends its arguments to the file named as the socket. */
const notifier = '#!/bin/sh\nprintf "%s\\n" "$*" >>"$NOTIFY_SOCKET"\n';

/** A service under systemd, whose notifications can be read. */
class Harness implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly systemd: Systemd;
  currentPhase: Phase = 'ready';
  ready = 2;
  stopping = 0;
  readonly #folder: TemporaryFolder;

  static async create(watchdogMs: number | null = null): Promise<Harness> {
    const folder = await temporaryFolder();
    await writeFile(join(folder.path, 'notify'), notifier);
    await chmod(join(folder.path, 'notify'), 0o755);
    return new Harness(folder, watchdogMs);
  }

  private constructor(folder: TemporaryFolder, watchdogMs: number | null) {
    this.#folder = folder;
    const handover = { notifySocket: join(folder.path, 'sent'), watchdogMs, passedFds: [] };
    this.systemd = new Systemd(handover, join(folder.path, 'notify'), 42, this.clock);
  }

  start(): void {
    this.systemd.startNotifications({
      phase: () => this.currentPhase,
      slots: { active: 0, waiting: 1 },
      workers: { counts: () => ({ starting: 0, ready: this.ready, stopping: this.stopping }) },
    });
  }

  /** Returns the notifications, once there are this many. */
  async sent(count: number): Promise<string[]> {
    const lines = async () => {
      const text = await readFile(join(this.#folder.path, 'sent'), 'utf8').catch(() => '');
      return text.split('\n').slice(0, -1);
    };
    await until(async () => (await lines()).length >= count, `${count} notifications`);
    return lines();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]();
  }
}

describe('A missing systemd-notify', () => {
  const handover = { notifySocket: '/run/notify', watchdogMs: null, passedFds: [] };

  it('causes a warning if systemd expects a notification', () => {
    const warnings = (socket: string | null, program: string | null) =>
      new Systemd({ ...handover, notifySocket: socket }, program, 42, new FakeClock()).warnings;
    expect(warnings('/run/notify', null)).toEqual([
      expect.stringMatching(/^NOTIFY_SOCKET .* no systemd-notify on PATH/),
    ]);
    expect([...warnings('/run/notify', '/usr/bin/systemd-notify'), ...warnings(null, null)]).toEqual([]);
  });
});

describe('The service notifies systemd', () => {
  it('of its main phases, in order, in the name of this process', async () => {
    await using harness = await Harness.create();
    for (const phase of ['starting', 'ready', 'draining', 'stopped'] as const) harness.systemd.announce(phase);
    expect(await harness.sent(2)).toEqual(['--pid=42 READY=1', '--pid=42 STOPPING=1']);
  });

  it('of a reload and of its end, even if the reload has failed', async () => {
    await using harness = await Harness.create();
    expect(await harness.systemd.reloading(Promise.resolve(false))).toBe(false);
    expect(await harness.sent(2)).toEqual(['--pid=42 RELOADING=1', '--pid=42 READY=1']);
  });

  it('of its state, when that has changed', async () => {
    await using harness = await Harness.create();
    harness.start();
    await harness.clock.advance(10_000);
    harness.currentPhase = 'draining';
    await harness.clock.advance(2000);
    expect(await harness.sent(2)).toEqual([
      '--pid=42 STATUS=ready: 0 running, 1 waiting, 2 workers',
      '--pid=42 STATUS=draining: 0 running, 1 waiting, 2 workers',
    ]);
  });

  it('twice in each watchdog interval while a worker can answer or the service drains', async () => {
    await using harness = await Harness.create(1000);
    harness.start();
    await harness.clock.advance(1000);
    harness.ready = 0;
    await harness.clock.advance(500);
    harness.currentPhase = 'draining';
    await harness.clock.advance(499);
    expect(await harness.sent(2)).toEqual(Array(2).fill('--pid=42 WATCHDOG=1'));
    await harness.clock.advance(1);
    expect((await harness.sent(4)).filter((line) => line.includes('WATCHDOG'))).toHaveLength(3);
  });

  it('of its watchdog while the last workers finish their requests', async () => {
    await using harness = await Harness.create(1000);
    harness.start();
    harness.ready = 0;
    harness.stopping = 1;
    await harness.clock.advance(500);
    expect(await harness.sent(1)).toEqual(['--pid=42 WATCHDOG=1']);
  });

  it('of nothing if systemd does not ask for it, or there is no systemd-notify', async () => {
    const clock = new FakeClock();
    for (const [notifySocket, program] of [
      ['/run/notify', null],
      [null, '/usr/bin/systemd-notify'],
    ] as const) {
      const systemd = new Systemd({ notifySocket, watchdogMs: 1000, passedFds: [] }, program, 42, clock);
      systemd.startNotifications({} as never);
      systemd.announce('ready');
    }
    expect(clock.pending).toBe(0);
  });

  it.each(['not\0a program', '/bin/false'])(
    'without success if the notifier does not work, and continues: %j',
    async (program) => {
      const handover = { notifySocket: '/run/notify', watchdogMs: null, passedFds: [] };
      const systemd = new Systemd(handover, program, 42, new FakeClock());
      systemd.announce('ready');
      expect(await systemd.reloading(Promise.resolve(true))).toBe(true);
    },
  );
});
