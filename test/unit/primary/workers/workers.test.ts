import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { withResolvers } from '../../../../src/shared/async.js';
import { bindTcp } from '../../../../src/shared/node-internals/connections.js';
import { until } from '../../../support/basics/until.js';
import { isAlive } from '../../../support/processes/processes.js';
import { WorkersHarness } from '../../../support/processes/workers-harness.js';

const checkMs = 2500;
const startLimitMs = 60_000;
const silenceLimitMs = 10_000;
/** Additional time after the limit that the worker itself has. */
const exitLimitMs = 1000;
const killLimitMs = 2000;
const maxExchangeMs = 1000;
/** Delay before the next start; doubled after each failed one. */
const firstWaitMs = 100;
const maxWaitMs = 5000;

/** Starts this many workers, and waits until all listen. */
async function listening(size = 1): Promise<WorkersHarness> {
  const harness = await WorkersHarness.create({ size });
  harness.start('listens');
  await harness.untilTold('listening', size);
  return harness;
}

describe('A worker', () => {
  it('is ready when it reports that it listens', async () => {
    await using harness = await WorkersHarness.create({ size: 2 });
    harness.start('listens');
    expect(harness.workers.counts()).toEqual({ starting: 2, ready: 0, stopping: 0 });
    await harness.untilTold('listening', 2);
    expect(harness.workers.counts()).toEqual({ starting: 0, ready: 2, stopping: 0 });
    expect(harness.workers.snapshot()).toEqual([
      { id: 1, pid: expect.any(Number), state: 'ready', restarts: 0 },
      { id: 2, pid: expect.any(Number), state: 'ready', restarts: 0 },
    ]);
    expect(harness.handles.map(({ pid }) => pid).toSorted()).toEqual(harness.pids().toSorted());
  });

  it('receives the phase, and sends its figures by itself and on request', async () => {
    await using harness = await listening();
    await harness.workers.callAll((peer) => peer.call('phase', { phase: 'draining' }));
    await harness.untilTold('counted: draining');
    expect(await harness.handles[0]?.fetchFigures()).toMatchObject([{ name: 'asked' }]);
  });

  it('answers a call to all workers before the call is over, but holds it up for at most a second', async () => {
    await using harness = await listening();
    const answers = withResolvers();
    const over: string[] = [];
    void harness.workers.callAll(() => answers.promise).then(() => over.push('all have answered'));
    void harness.workers.callAll(() => withResolvers().promise).then(() => over.push('one hangs'));
    await harness.clock.advance(999);
    expect(over).toEqual([]);
    answers.resolve();
    await until(() => over.length === 1, 'the first call to be over');
    await harness.clock.advance(1);
    await until(() => over.length === 2, 'the second call to be over');
    expect(over).toEqual(['all have answered', 'one hangs']);
  });

  it('is killed and replaced if it fails a call to all workers: it would keep an old state, such as a removed key', async () => {
    await using harness = await listening();
    const [first = 0] = harness.pids();
    await harness.workers.callAll(async () => {
      throw new Error('a defect');
    });
    await harness.clock.advance(1000);
    await harness.untilTold('left');
    await harness.untilTold('listening', 2);
    expect(harness.pids()).not.toContain(first);
    expect(harness.log.events).toContain('internal_error');
  });

  it('inherits the open addresses, and connections made without a worker are answered by the next one', async () => {
    const socket = await bindTcp('127.0.0.1', 0);
    await using harness = await WorkersHarness.create({ fds: [socket.fd] });
    harness.start('serves');
    await harness.untilTold('listening');
    const ask = () => text(connect(socket.address?.port ?? 0));
    const [first = 0] = harness.pids();
    expect(Number(await ask())).toBe(first);
    process.kill(first, 'SIGKILL');
    const answers = await Promise.all([ask(), ask(), ask()].map((answer) => answer.catch(() => '')));
    const [second] = harness.pids();
    expect(second).not.toBe(first);
    expect(answers.map(Number)).toContain(second);
    expect(Number(await ask())).toBe(second);
    socket.close();
  });
});

describe('A worker that dies', () => {
  it('is replaced immediately if it had listened', async () => {
    await using harness = await listening();
    for (let times = 1; times <= 3; times++) {
      const [pid = 0] = harness.pids();
      process.kill(pid, 'SIGKILL');
      await harness.untilTold('listening', times + 1);
      expect(harness.workers.snapshot()).toMatchObject([{ id: 1, state: 'ready', restarts: times }]);
    }
    expect(harness.reports).toEqual(['listening', ...Array(3).fill(['left', 'restarted: crash', 'listening']).flat()]);
    expect(harness.log.entries.map(({ level, event, fields }) => [level, event, fields])).toEqual(
      Array(3).fill(['warn', 'worker_gone', { worker: 1, code: null, signal: 'SIGKILL' }]),
    );
    expect(harness.clock.monotonicMs()).toBe(0);
  });

  it('is replaced after a delay if it had not, and the delay grows each time', async () => {
    await using harness = await WorkersHarness.create();
    harness.start('dies');
    for (const waitMs of [firstWaitMs, 2 * firstWaitMs, 4 * firstWaitMs]) {
      await harness.untilLogged('worker_gone', harness.log.events.length + 1);
      expect(harness.workers.snapshot()).toMatchObject([{ id: 1, pid: null, state: 'starting' }]);
      await harness.clock.advance(waitMs - 1);
      expect(harness.pids()).toEqual([]);
      await harness.clock.advance(1);
      expect(harness.pids()).toHaveLength(1);
    }
    expect(harness.log.entries[0]).toMatchObject({ level: 'warn', fields: { worker: 1, code: 1, signal: null } });
  });

  it('is no longer replaced once the service stops', async () => {
    await using harness = await listening();
    const stopped = harness.workers.stop(2000);
    process.kill(harness.pids()[0] ?? 0, 'SIGKILL');
    expect(await stopped).toBe(false);
    await harness.clock.advance(60_000);
    expect([harness.reports, harness.pids()]).toEqual([['listening', 'left'], []]);
  });
});

describe('A service whose workers never listen', () => {
  it('gives up at the first that cannot use its address', async () => {
    await using harness = await WorkersHarness.create();
    harness.start('cannot-listen');
    await harness.untilTold('unavailable: the address cannot be used');
    await harness.clock.advance(60_000);
    expect(harness.reports).toEqual(['left', 'unavailable: the address cannot be used']);
  });

  it('continues to try if one had listened before', async () => {
    await using harness = await listening();
    harness.use('cannot-listen');
    process.kill(harness.pids()[0] ?? 0, 'SIGKILL');
    await harness.untilLogged('worker_gone', 2);
    harness.use('listens');
    await harness.clock.advance(firstWaitMs);
    await harness.untilTold('listening', 2);
    expect(harness.reports.filter((event) => event.startsWith('unavailable'))).toEqual([]);
  });
});

describe('A worker that the system cannot start', () => {
  it('is retried until it starts, and is logged', async () => {
    await using harness = await WorkersHarness.create();
    harness.breakStarts();
    harness.start('listens');
    await harness.untilLogged('worker_start_failed');
    expect(harness.workers.snapshot()).toEqual([{ id: 1, pid: null, state: 'starting', restarts: 0 }]);
    expect(harness.known).toEqual([]);
    expect(harness.log.entries).toMatchObject([
      { level: 'error', fields: { worker: 1, error: expect.stringMatching('ENOENT') } },
    ]);
    await harness.clock.advance(firstWaitMs);
    await harness.untilLogged('worker_start_failed', 2);
    await harness.repairStarts();
    await harness.clock.advance(2 * firstWaitMs);
    await harness.untilTold('listening');
    expect(harness.workers.counts()).toEqual({ starting: 0, ready: 1, stopping: 0 });
    expect(harness.reports.filter((event) => event.startsWith('restarted'))).toEqual([
      'restarted: crash',
      'restarted: crash',
    ]);
  });

  it('does not delay the end of the service', async () => {
    await using harness = await WorkersHarness.create();
    harness.breakStarts();
    harness.start('listens');
    await harness.workers.stop(2000);
    expect(harness.log.events).toEqual(['worker_start_failed']);
  });

  it('makes a reload fail, and the existing worker stays', async () => {
    await using harness = await listening();
    const [before] = harness.workers.snapshot();
    harness.breakStarts();
    expect(await harness.workers.replaceAll()).toBe(false);
    expect(harness.log.events).toEqual(['worker_start_failed', 'reload_failed']);
    expect(harness.workers.snapshot()).toEqual([before]);
  });

  it('is also retried if the system refuses immediately, and abandoned after eight failed attempts', async () => {
    await using harness = await WorkersHarness.create();
    harness.start('not\0a program');
    for (let tries = 1; tries < 8; tries++) {
      expect(harness.log.events).toHaveLength(tries);
      expect(harness.reports).not.toContain('unavailable: no worker can start');
      await harness.clock.advance(Math.min(firstWaitMs * 2 ** (tries - 1), maxWaitMs));
    }
    expect(new Set(harness.log.events)).toEqual(new Set(['worker_start_failed']));
    expect(harness.reports.at(-1)).toBe('unavailable: no worker can start');
    expect(harness.known).toEqual([]);
  });
});

describe('A worker that hangs', () => {
  it('is killed after a minute if it is starting, and replaced', async () => {
    await using harness = await WorkersHarness.create();
    harness.start('hangs');
    const [first] = harness.pids();
    await harness.clock.advance(startLimitMs - 1);
    expect(harness.log.events).toEqual([]);
    await harness.clock.advance(1);
    await harness.untilLogged('worker_gone');
    expect(harness.log.entries).toMatchObject([
      { event: 'worker_unresponsive', level: 'error' },
      { event: 'worker_gone', fields: { signal: 'SIGKILL' } },
    ]);
    await harness.clock.advance(firstWaitMs);
    expect(harness.reports).toEqual(['left', 'restarted: unresponsive']);
    expect(harness.pids()).toEqual([expect.any(Number)]);
    expect(harness.pids()).not.toEqual([first]);
  });

  it('is killed after ten seconds without a heartbeat if it had listened', async () => {
    await using harness = await listening();
    const [pid] = harness.pids();
    for (let heartbeats = 0; heartbeats < 10; heartbeats++) {
      await harness.clock.advance(3 * checkMs);
      harness.beat(pid);
    }
    await harness.clock.advance(silenceLimitMs - 1);
    expect(harness.log.events).toEqual([]);
    await harness.clock.advance(1);
    await harness.untilTold('listening', 2);
    expect(harness.log.events).toEqual(['worker_unresponsive', 'worker_gone']);
    expect(harness.reports).toEqual(['listening', 'left', 'restarted: unresponsive', 'listening']);
  });

  it('makes a reload fail, and the existing worker stays', async () => {
    await using harness = await listening();
    const [before] = harness.workers.snapshot();
    harness.use('hangs');
    const replaced = harness.workers.replaceAll();
    for (let passedMs = 0; passedMs < startLimitMs; passedMs += checkMs) {
      harness.beat(before?.pid);
      await harness.clock.advance(checkMs);
    }
    expect(await replaced).toBe(false);
    expect(harness.log.events).toEqual(['worker_unresponsive', 'reload_failed']);
    expect(harness.workers.snapshot()).toEqual([before]);
  });
});

describe('A reload of the workers', () => {
  it('replaces them one by one, each after its successor listens', async () => {
    await using harness = await listening(2);
    const before = harness.pids();
    expect(await harness.workers.replaceAll()).toBe(true);
    expect(harness.reports.slice(2)).toEqual(['listening', 'restarted: reload', 'listening', 'restarted: reload']);
    expect(harness.workers.counts()).toEqual({ starting: 0, ready: 2, stopping: 2 });
    const ready = harness.workers.snapshot().filter(({ state }) => state === 'ready');
    expect(ready.map(({ id, restarts }) => [id, restarts])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(ready.filter(({ pid }) => before.includes(pid ?? 0))).toEqual([]);
  });

  it('kills a replaced worker when its time for the last answer is over, and logs it', async () => {
    await using harness = await listening();
    const [old = 0] = harness.pids();
    await harness.workers.replaceAll();
    await harness.clock.advance(maxExchangeMs + exitLimitMs - 1);
    expect(isAlive(old)).toBe(true);
    await harness.clock.advance(1);
    await harness.untilLogged('worker_gone');
    expect(harness.log.entries).toMatchObject([{ level: 'warn', fields: { worker: 1, signal: 'SIGKILL' } }]);
    expect(harness.workers.snapshot()).toMatchObject([{ id: 1, state: 'ready', restarts: 1 }]);
  });

  it('starts no replacement for a worker that was replaced', async () => {
    await using harness = await listening();
    const [old = 0] = harness.pids();
    expect(await harness.workers.replaceAll()).toBe(true);
    process.kill(old, 'SIGKILL');
    await harness.untilLogged('worker_gone');
    expect(harness.log.entries.at(-1)).toMatchObject({ level: 'warn', fields: { worker: 1, signal: 'SIGKILL' } });
    await harness.clock.advance(maxWaitMs);
    expect(harness.workers.snapshot()).toMatchObject([{ id: 1, state: 'ready', restarts: 1 }]);
  });
});

describe('The end of the service', () => {
  it('may begin with workers that finish their requests, and none is replaced', async () => {
    await using harness = await listening(2);
    const [first = 0, second = 0] = harness.pids();
    const retired = harness.workers.retireAll();
    expect(harness.workers.counts()).toEqual({ starting: 0, ready: 0, stopping: 2 });
    process.kill(first, 'SIGKILL');
    await harness.untilTold('left');
    await harness.clock.advance(maxExchangeMs); // at the end of this time, the other worker would be killed
    expect(harness.pids()).toEqual([second]);
    process.kill(second, 'SIGKILL');
    await retired;
    expect([harness.reports.includes('restarted: crash'), harness.log.events]).toEqual([false, []]);
  });

  it.each([
    ['sent all their answers', 'stops', true],
    ['had to cut an answer', 'stops-cut', false],
  ])('waits until all workers have exited, and reports whether they %s', async (_, program, isAllSent) => {
    await using harness = await WorkersHarness.create({ size: 2 });
    harness.start(program);
    await harness.untilTold('listening', 2);
    const pids = harness.pids();
    expect(await harness.workers.stop(2000)).toBe(isAllSent);
    expect(pids.filter(isAlive)).toEqual([]);
    expect([harness.log.events, harness.workers.snapshot().map(({ pid }) => pid)]).toEqual([[], [null, null]]);
  });

  it('is not incomplete because of a worker that was still starting', async () => {
    await using harness = await WorkersHarness.create();
    harness.start('hangs');
    const stopped = harness.workers.stop(2000);
    await harness.clock.advance(2000 + exitLimitMs);
    expect(await stopped).toBe(true);
  });

  it('kills a worker that does not exit in time', async () => {
    await using harness = await listening();
    const [pid = 0] = harness.pids();
    const stopped = harness.workers.stop(2000);
    await harness.clock.advance(2000 + exitLimitMs - 1);
    expect(isAlive(pid)).toBe(true);
    await harness.clock.advance(1);
    expect(await stopped).toBe(false);
    await until(() => !isAlive(pid), 'the worker to be gone');
  });

  it('may be requested again with less time', async () => {
    await using harness = await listening();
    const stopped = [harness.workers.stop(30_000), harness.workers.stop(0)];
    await harness.clock.advance(exitLimitMs);
    expect(await Promise.all(stopped)).toEqual([false, false]);
  });

  it('abandons a worker that is still there two seconds after it was killed, and logs it', async () => {
    await using harness = await WorkersHarness.create();
    harness.start('hangs');
    harness.shield();
    let hasStopped = false;
    const stopped = harness.workers.stop(2000).then(() => {
      hasStopped = true;
    });
    await harness.clock.advance(2000 + exitLimitMs + killLimitMs - 1);
    expect([hasStopped, harness.log.events]).toEqual([false, []]);
    await harness.clock.advance(1);
    await stopped;
    expect(harness.log.events).toEqual(['worker_unresponsive']);
  });
});
