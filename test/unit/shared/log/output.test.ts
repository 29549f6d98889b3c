import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { LogOutput, type LogTarget, openForLog } from '../../../../src/shared/log/logger.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { createLogSocket, createPipe, type Pipe } from '../../../support/basics/pipe.js';
import { until } from '../../../support/basics/until.js';

const gatherMs = 20;
const retryMs = 100;
const flushRetryMs = 10;
const nonBlocking = constants.O_NONBLOCK;

class House {
  readonly clock = new FakeClock();
  readonly output: LogOutput;
  lost = 0;

  constructor(target: LogTarget) {
    this.output = new LogOutput(target, this.clock, () => this.lost++);
  }

  /** Resolves once a write has found no space. */
  async untilFull(): Promise<void> {
    await this.clock.advance(gatherMs);
    await until(() => this.clock.pending > 0, 'a write to find no room');
  }

  async flush(): Promise<boolean> {
    const flushed = { isOver: false };
    const isComplete = this.output.flush().finally(() => {
      flushed.isOver = true;
    });
    while (!flushed.isOver) {
      await setTimeout(flushRetryMs); // a write in another thread needs real time
      await this.clock.advance(flushRetryMs);
    }
    return isComplete;
  }
}

/** Returns an output to a pipe without space. */
function fullHouse(pipe: Pipe): House {
  const house = new House({ fd: pipe.open('non-blocking') });
  pipe.fill();
  return house;
}

/** Returns what was written to a pipe after `fill`. */
function withoutFill(text: string): string {
  return text.replace(/^x+/, '');
}

async function untilRead(pipe: Pipe, text: string): Promise<void> {
  let read = '';
  await until(() => {
    read += pipe.read();
    return read.length >= text.length;
  }, 'the records');
  expect(read).toBe(text);
}

describe('The log output', () => {
  it('writes simultaneous records together', async () => {
    await using pipe = await createPipe();
    const { output, clock } = new House({ fd: pipe.open('non-blocking') });
    output.write('one\n');
    output.write('two\n');
    await clock.advance(gatherMs - 1);
    expect(pipe.read()).toBe('');
    await clock.advance(1);
    await untilRead(pipe, 'one\ntwo\n');
  });

  it('waits for space in a full pipe, preserves the order, and loses nothing', async () => {
    await using pipe = await createPipe();
    const house = fullHouse(pipe);
    const lines = Array.from({ length: 500 }, (_, index) => `${index} ${'x'.repeat(100)}\n`);
    for (const line of lines) house.output.write(line);
    await house.untilFull();
    pipe.read();
    await house.clock.advance(retryMs);
    await untilRead(pipe, lines.join(''));
    expect(house.lost).toBe(0);
  });

  it('drops records beyond 1 MiB, and counts them', async () => {
    await using pipe = await createPipe();
    const house = fullHouse(pipe);
    const line = `${'x'.repeat(4095)}\n`;
    for (let count = 0; count < 256; count++) house.output.write(line);
    await house.clock.advance(gatherMs);
    expect(house.lost).toBe(0);
    for (let count = 0; count < 3; count++) house.output.write(line);
    await house.clock.advance(gatherMs);
    expect(house.lost).toBe(3);
  });

  it('drops and counts records that cannot be written, and continues', async () => {
    const fd = openSync('/dev/full', 'w');
    const house = new House({ fd });
    for (let round = 1; round <= 3; round++) {
      house.output.write('one\n');
      await house.clock.advance(gatherMs);
      await until(() => house.lost === round, 'the loss to be counted');
    }
    closeSync(fd);
  });
});

describe('A flush', () => {
  it('writes the last records after the waiting ones', async () => {
    await using pipe = await createPipe();
    const house = fullHouse(pipe);
    house.output.write('one\n');
    await house.untilFull();
    house.output.write('two\n');
    const first = pipe.read();
    expect(await house.flush()).toBe(true);
    expect(withoutFill(first + pipe.read())).toBe('one\ntwo\n');
    await house.clock.advance(1000);
    expect(pipe.read()).toBe('');
  });

  it('writes records that are logged while it waits', async () => {
    await using pipe = await createPipe();
    const house = fullHouse(pipe);
    house.output.write('one\n');
    await house.untilFull();
    const flushed = house.flush();
    house.output.write('two\n');
    const first = pipe.read(); // can already contain a record, because another thread writes
    expect(await flushed).toBe(true);
    expect(withoutFill(first + pipe.read())).toBe('one\ntwo\n');
  });

  it('gives up after a second if the pipe stays full', async () => {
    await using pipe = await createPipe();
    const house = fullHouse(pipe);
    house.output.write('one\n');
    const begunMs = house.clock.monotonicMs();
    expect(await house.flush()).toBe(true);
    expect(house.clock.monotonicMs() - begunMs).toBeLessThan(1500);
  });

  it('does not wait for a closed pipe or a full disk', async () => {
    await using pipe = await createPipe();
    const fds = [pipe.open('non-blocking'), openSync('/dev/full', 'w')];
    pipe.leave();
    for (const fd of fds) {
      const house = new House({ fd });
      for (let count = 0; count < 10; count++) house.output.write(`${'x'.repeat(4000)}\n`);
      expect(await house.flush()).toBe(true);
      expect(house.lost).toBe(10);
    }
    closeSync(fds[1] as number);
  });

  it('reports a write that is still blocked', async () => {
    await using pipe = await createPipe();
    const house = new House({ fd: pipe.open('blocking') });
    pipe.fill();
    house.output.write('one\n');
    expect(await house.flush()).toBe(false);
    await until(() => pipe.read().endsWith('one\n'), 'the write to end');
  });
});

/** Returns the flags of this open file, which all processes with the file share. */
function flagsOf(fd: number): number {
  return Number.parseInt(/flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '', 8);
}

/** Returns this end of a socket as an inherited file descriptor. */
function handleOf(socket: Socket) {
  return (socket as unknown as { _handle: { fd: number; setBlocking(isBlocking: boolean): void } })._handle;
}

describe('An open file for the log', () => {
  it('is a separate non-blocking one for an inherited pipe, whose flags stay unchanged', async () => {
    await using pipe = await createPipe();
    const inherited = pipe.open('blocking');
    const { fd } = openForLog(inherited);
    expect(flagsOf(fd) & nonBlocking).toBe(nonBlocking);
    expect(flagsOf(inherited) & nonBlocking).toBe(0);
    closeSync(fd);
  });

  it('does not block if it is a socket that another process has set to blocking mode', async () => {
    await using socket = await createLogSocket();
    const handle = handleOf(socket.writer);
    const house = new House(openForLog(handle.fd));
    await socket.fill();
    handle.setBlocking(true);
    house.output.write('one\n');
    await house.untilFull();
    handle.setBlocking(true);
    expect(await house.flush()).toBe(true);
  });

  it('is the same descriptor for a regular file', () => {
    const fd = openSync('/dev/null', 'w');
    expect(openForLog(fd)).toEqual({ fd });
    closeSync(fd);
  });
});
