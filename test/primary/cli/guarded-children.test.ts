import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { guardChildren } from '../../../src/primary/cli/guarded-children.js';

const missing = 'no-such-program-anywhere';

function startMissing(): ChildProcess {
  return spawn(missing);
}

/** Runs the action; resolves with the first fault that is told. */
function faultOf(action: () => void): Promise<unknown> {
  return new Promise((resolve) => guardChildren(action, resolve));
}

describe('code whose children nobody minds', () => {
  it('tells of a program that can not be started', async () => {
    expect(await faultOf(startMissing)).toMatchObject({ code: 'ENOENT' });
  });

  it('tells of one that can not be started by a listener of another, however deep', async () => {
    const later = () =>
      spawn('true').once('close', () => {
        spawn('true').once('close', startMissing);
      });
    expect(await faultOf(later)).toMatchObject({ code: 'ENOENT' });
  });

  it('tells of what it throws itself, and of what its listeners throw', async () => {
    const fault = new Error('not expected');
    const breaks = () => {
      throw fault;
    };
    expect(await faultOf(breaks)).toBe(fault);
    expect(await faultOf(() => spawn('true').once('close', breaks))).toBe(fault);
  });

  it('hears of its children as ever, and leaves those of others alone', async () => {
    const own: ChildProcess[] = [];
    guardChildren(() => own.push(spawn('true')), fail);
    const foreign = spawn('true');
    const exits = [...own, foreign].map((child) => once(child, 'exit'));
    expect(await Promise.all(exits)).toEqual([
      [0, null],
      [0, null],
    ]);
    expect([...own, foreign].map((child) => child.listenerCount('error'))).toEqual([1, 0]);
  });
});

function fail(fault: unknown): never {
  throw fault;
}
