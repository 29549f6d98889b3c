import { mkdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { loginOf } from '../../../../../src/primary/cli/adapters/claude/adapter.js';
import type { FileLogin } from '../../../../../src/primary/cli/contract/adapter.js';
import { LoginKeeper } from '../../../../../src/primary/cli/login/login-keeper.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';
import { LogBook } from '../../../../support/basics/log-book.js';

const minuteMs = 60_000;
const ended = { accessToken: '', refreshToken: '', expiresAt: 0 };

/** A login keeper whose program is controlled by the test. */
class LoginHouse implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new LogBook();
  readonly keeper: LoginKeeper;
  readonly login: FileLogin;
  /** The started programs, each with whether it must exit. */
  readonly programs: { isDone: boolean; exit: () => void }[] = [];
  readonly #folder: TemporaryFolder;

  private constructor(folder: TemporaryFolder) {
    this.#folder = folder;
    this.login = loginOf({ HOME: '/none', CLAUDE_CONFIG_DIR: folder.path }, false) as FileLogin;
    const renew = (isDone: Promise<void>) =>
      new Promise<void>((exit) => {
        const program = { isDone: false, exit };
        this.programs.push(program);
        void isDone.then(() => {
          program.isDone = true;
          exit();
        });
      });
    this.keeper = new LoginKeeper(this.login, { cli: 'claude', clock: this.clock, log: this.log, renew });
  }

  static async open(leftMs?: number): Promise<LoginHouse> {
    const house = new LoginHouse(await temporaryFolder());
    if (leftMs !== undefined) await house.store(leftMs);
    return house;
  }

  store(leftMs: number): Promise<void> {
    return this.write({ accessToken: 'a', refreshToken: `r${leftMs}`, expiresAt: this.clock.now() + leftMs });
  }

  write(tokens: object): Promise<void> {
    return writeFile(this.login.path, JSON.stringify({ claudeAiOauth: tokens }));
  }

  /** Takes the lock like the CLI: a folder, and a file that names its owner. */
  async lock(pid: number, ageMs = 0): Promise<void> {
    await mkdir(this.login.lock);
    const time = (this.clock.now() - ageMs) / 1000;
    await utimes(this.login.lock, time, time);
    const { birthtimeMs: lockBirthtimeMs } = await stat(this.login.lock);
    await writeFile(this.login.lockOwner, JSON.stringify({ pid, lockBirthtimeMs }));
  }

  unlock(): Promise<void> {
    return rm(this.login.lock, { recursive: true });
  }

  /** Advances the clock until the condition holds; files are read in real time. */
  async until(isSo: () => boolean, limitMs = 100_000): Promise<void> {
    for (const startMs = this.clock.monotonicMs(); !isSo(); await sleep(1)) {
      if (this.clock.monotonicMs() - startMs > limitMs) throw new Error('waited in vain');
      await this.clock.advance(50);
    }
  }

  /** Waits until a program may start. */
  ask(): { isReady: boolean } {
    const asker = { isReady: false };
    void this.keeper.ready().then(() => {
      asker.isReady = true;
    });
    return asker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.keeper.stopRenewals();
    await this.#folder[Symbol.asyncDispose]();
  }
}

describe('The login keeper', () => {
  it('lets programs start while the token is valid', async () => {
    await using house = await LoginHouse.open(6 * minuteMs);
    await house.keeper.ready();
    expect([house.keeper.isDue, house.programs.length, await house.keeper.findFault()]).toEqual([false, 0, null]);
  });

  it('does nothing if there is no login file, or one without tokens', async () => {
    await using house = await LoginHouse.open();
    await house.keeper.ready();
    expect([house.keeper.isDue, await house.keeper.findFault()]).toEqual([false, undefined]);
    await writeFile(house.login.path, '{"mcpOAuth":{}}');
    expect(await house.keeper.findFault()).toBeUndefined();
  });

  const whole = { accessToken: 'a', refreshToken: 'r', expiresAt: 9 };
  const text = JSON.stringify({ claudeAiOauth: whole });
  it.each<[string, (path: string) => Promise<unknown>]>([
    ['no bytes', (path) => writeFile(path, '')],
    ...[1, 9, 40].map((cut): [string, (path: string) => Promise<unknown>] => [
      `its last ${cut} bytes missing`,
      (path) => writeFile(path, text.slice(0, -cut)),
    ]),
    ['a list in it', (path) => writeFile(path, '[]')],
    ['bytes that are no text', (path) => writeFile(path, Buffer.from([0xff, 0xfe, 0]))],
    ...Object.keys(whole).flatMap((name) =>
      [undefined, null, {}, -1, 1e300].map((value): [string, (path: string) => Promise<unknown>] => [
        `${name} ${JSON.stringify(value)}`,
        (path) => writeFile(path, JSON.stringify({ claudeAiOauth: { ...whole, [name]: value } })),
      ]),
    ),
    ['a folder in its place', (path) => mkdir(path)],
    ['a loop of links in its place', (path) => symlink(path, path)],
    ['nothing in its place', async () => {}],
  ])('starts no program for a file with %s, and renews the login once it is whole again', async (_, damage) => {
    await using house = await LoginHouse.open(60 * minuteMs);
    house.keeper.startRenewals();
    expect(await house.keeper.findFault()).toBeNull();
    await rm(house.login.path);
    await damage(house.login.path);
    expect([null, undefined]).toContain(await house.keeper.findFault());
    expect([house.keeper.isDue, house.programs]).toEqual([false, []]);
    await rm(house.login.path, { recursive: true, force: true });
    await house.store(minuteMs);
    await house.until(() => house.programs.length === 1);
  });

  it('renews a due login with one program, and lets all others start once the new token is stored', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    const askers = [house.ask(), house.ask()];
    await house.until(() => house.programs.length > 0);
    await house.lock(process.pid);
    askers.push(house.ask());
    await house.clock.advance(15_000);
    await house.store(60 * minuteMs);
    await house.clock.advance(1000);
    expect(askers.map(({ isReady }) => isReady)).toEqual([false, false, false]); // the lock still exists
    expect(house.programs).toMatchObject([{ isDone: false }]);
    await house.unlock();
    await house.until(() => askers.every(({ isReady }) => isReady));
    expect(house.programs).toMatchObject([{ isDone: true }]);
    expect(house.log.entries).toMatchObject([{ event: 'login_renewed', fields: { cli: 'claude' } }]);
    expect(house.keeper.isDue).toBe(false);
  });

  it('waits until the CLI itself would renew the token', async () => {
    await using house = await LoginHouse.open(5 * minuteMs + 1000);
    const asker = house.ask();
    await house.until(() => house.programs.length > 0);
    expect([house.clock.monotonicMs() > 1000, asker.isReady]).toEqual([true, false]);
  });

  it('lets a program start after each renewal, even if the new token is due immediately', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    for (const round of [1, 2, 3]) {
      const asker = house.ask();
      await house.until(() => house.programs.length === round);
      await house.store(4 * minuteMs + round);
      await house.until(() => asker.isReady);
    }
    expect(house.log.events).toEqual(['login_renewed', 'login_renewed', 'login_renewed']);
  });

  it('starts no program while another process renews the login, such as one of the previous service', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    await house.lock(process.pid);
    const asker = house.ask();
    await house.clock.advance(2000);
    await house.store(60 * minuteMs);
    await house.until(() => asker.isReady);
    expect(house.programs).toEqual([]);
  });

  it.each([
    ['whose owner has died', 2 ** 22 + 1, 0],
    ['that nobody has updated for long', process.pid, 30_000],
  ])('does not wait for a lock %s', async (_, pid, ageMs) => {
    await using house = await LoginHouse.open(4 * minuteMs);
    await house.lock(pid, ageMs);
    house.ask();
    await house.until(() => house.programs.length > 0);
  });

  it('lets jobs use the old token after a failure, and retries less and less often', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    house.keeper.startRenewals();
    for (const round of [1, 2, 3, 4]) {
      await house.until(() => house.programs.length === round);
      const asker = house.ask();
      house.programs.at(-1)?.exit();
      await house.until(() => asker.isReady);
    }
    expect(house.log.entries).toMatchObject([2, 4, 8, 16].map((retry_seconds) => ({ fields: { retry_seconds } })));
    expect(await house.keeper.findFault()).toBeNull();
    await house.clock.advance(4 * minuteMs);
    expect(await house.keeper.findFault()).toMatch(/has expired, and \d+ renewals in a row have failed/);
  });

  it('ends a program that never starts a renewal', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    const asker = house.ask();
    await house.until(() => asker.isReady);
    expect(house.programs).toMatchObject([{ isDone: true }]);
    expect(house.log.events).toEqual(['login_not_renewed']);
  });

  it('reports a login whose renewal was refused, until a person logs in again', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    const asker = house.ask();
    await house.until(() => house.programs.length > 0);
    await house.write(ended);
    await house.until(() => asker.isReady);
    expect(house.log.events).toEqual(['login_ended']);
    expect(await house.keeper.findFault()).toMatch('log in anew');
    await house.store(60 * minuteMs);
    expect(await house.keeper.findFault()).toBeNull();
  });

  it('reports which processes must not be ended', async () => {
    await using house = await LoginHouse.open(4 * minuteMs);
    const isRenewedBy = (...pids: number[]) => house.keeper.isRenewedBy(async () => pids);
    expect(await isRenewedBy(7)).toBe(false);
    await house.lock(7);
    expect([await isRenewedBy(6, 7), await isRenewedBy(6)]).toEqual([true, false]);
    // This file belongs to an earlier lock.
    await writeFile(house.login.lockOwner, JSON.stringify({ pid: 6, lockBirthtimeMs: 1 }));
    expect([await isRenewedBy(7), await isRenewedBy(5)]).toEqual([true, true]);
  });
});

describe('The login of claude', () => {
  it.each([
    ['its HOME', { HOME: '/home/me' }, '/home/me/.claude/.credentials.json'],
    ['CLAUDE_CONFIG_DIR', { HOME: '/home/me', CLAUDE_CONFIG_DIR: '/etc/c' }, '/etc/c/.credentials.json'],
  ])('is in %s', (_, given, path) => {
    expect(loginOf(given, false)?.path).toBe(path);
  });

  it('is not in files if the environment contains a credential', () => {
    const given = { HOME: '/home/me' };
    const key = { ...given, ANTHROPIC_API_KEY: 'sk' };
    expect([loginOf(given, true), loginOf(key, false), loginOf({}, false)]).toEqual([undefined, undefined, undefined]);
  });
});
