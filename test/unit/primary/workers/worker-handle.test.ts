import type { Worker } from 'node:cluster';
import {
  RestartPolicy,
  WorkerHandle,
  type WorkerPeer,
  WorkerSlot,
} from '../../../../src/primary/workers/worker-handle.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

const limitMs = 1000;
const killLimitMs = 2000;

/** Creates the handle of a worker that only records its signals. */
function createHandle() {
  const signals: unknown[] = [];
  const process = { pid: 7, kill: (signal: unknown) => signals.push(signal) };
  const handle = new WorkerHandle(new WorkerSlot(1), { process } as unknown as Worker, () => ({}) as WorkerPeer);
  return { handle, signals };
}

describe('The exit of a worker', () => {
  it('has the code that the worker announced, if it had to kill itself to exit', async () => {
    const { handle } = createHandle();
    handle.recordExitCode(0);
    const exited = handle.exitedWithin(limitMs, new FakeClock());
    expect([handle.recordExit(null), await exited]).toEqual([0, 0]);
  });

  it('has its real code if there is one, and none if the worker was killed or announced nothing', () => {
    const [own, killed, silent] = [createHandle().handle, createHandle().handle, createHandle().handle];
    own.recordExitCode(0);
    killed.recordExitCode(0);
    killed.kill();
    expect([own.recordExit(2), killed.recordExit(null), silent.recordExit(null)]).toEqual([2, null, null]);
  });
});

describe('The state of a worker', () => {
  it('is starting, ready, stopping', () => {
    const { handle } = createHandle();
    const states = [handle.state];
    handle.markListening();
    states.push(handle.state);
    handle.markStopping();
    expect([...states, handle.state]).toEqual(['starting', 'ready', 'stopping']);
  });

  it('remains stopping if it starts to listen after it was stopped', () => {
    const { handle } = createHandle();
    handle.markStopping();
    handle.markListening();
    expect([handle.state, handle.hasListened]).toEqual(['stopping', true]);
  });

  it('is settled when it listens, or exits earlier', async () => {
    const [listening, dying] = [createHandle().handle, createHandle().handle];
    listening.markListening();
    listening.recordExit(0);
    dying.recordExit(1);
    expect(await Promise.all([listening.settled, dying.settled])).toEqual([true, false]);
    const clock = new FakeClock();
    const codes = [listening.exitedWithin(1, clock), dying.exitedWithin(1, clock)];
    expect(await Promise.all(codes)).toEqual([0, 1]);
  });

  it('includes why it died', () => {
    const { handle, signals } = createHandle();
    expect(handle.causeOfDeath).toBe('crash');
    handle.kill();
    expect([handle.causeOfDeath, signals]).toEqual(['unresponsive', ['SIGKILL']]);
  });
});

describe('The exit of a worker within a limit', () => {
  it('needs no signal if it happens in time, and leaves no timer', async () => {
    const { handle, signals } = createHandle();
    const clock = new FakeClock();
    const exited = handle.exitedWithin(limitMs, clock);
    await clock.advance(limitMs - 1);
    handle.recordExit(0);
    expect(await exited).toBe(0);
    await settled();
    expect([signals, clock.pending]).toEqual([[], 0]);
  });

  it('is forced at the limit', async () => {
    const { handle, signals } = createHandle();
    const clock = new FakeClock();
    const exited = handle.exitedWithin(limitMs, clock);
    await clock.advance(limitMs);
    expect(signals).toEqual(['SIGKILL']);
    handle.recordExit(null);
    expect(await exited).toBeNull();
  });

  it('is awaited for at most two seconds after the limit', async () => {
    const { handle } = createHandle();
    const clock = new FakeClock();
    const exited = handle.exitedWithin(limitMs, clock);
    await clock.advance(limitMs + killLimitMs);
    expect(await exited).toBe('left');
  });
});

it('The delay before a restart is zero after a worker that had listened, and starts anew after that', () => {
  const policy = new RestartPolicy();
  const hadListened = [true, true, false, false, true, false];
  expect(hadListened.map((each) => policy.delayAfter(each))).toEqual([0, 0, 100, 200, 0, 100]);
});
