import { closeSync, openSync } from 'node:fs';
import { LogOutput, type LogTarget, openForLog } from '../../src/shared/log-output.js';
import { FakeClock } from '../support/fake-clock.js';
import { createPipe, type Pipe } from '../support/pipe.js';
import { until } from '../support/until.js';

const gatherMs = 20;
const retryMs = 100;

class House {
  readonly clock = new FakeClock();
  readonly output: LogOutput;
  lost = 0;

  constructor(target: LogTarget) {
    this.output = new LogOutput(target, this.clock, () => this.lost++);
  }
}

async function untilRead(pipe: Pipe, text: string): Promise<void> {
  let read = '';
  await until(() => {
    read += pipe.read();
    return read.length >= text.length;
  }, 'the records');
  expect(read).toBe(text);
}

describe.each([
  ['on another thread', true],
  ['at once', false],
])('The output of the log, written %s,', (_how, mayBlock) => {
  it('writes the records of a moment together', async () => {
    await using pipe = await createPipe();
    const { output, clock } = new House({ fd: pipe.open('non-blocking'), mayBlock });
    output.write('one\n');
    output.write('two\n');
    await clock.advance(gatherMs - 1);
    expect(pipe.read()).toBe('');
    await clock.advance(1);
    await untilRead(pipe, 'one\ntwo\n');
  });

  it('waits for room in a full pipe, keeps order, and loses nothing', async () => {
    await using pipe = await createPipe();
    const house = new House({ fd: pipe.open('non-blocking'), mayBlock });
    pipe.fill();
    const lines = Array.from({ length: 500 }, (_, index) => `${index} ${'x'.repeat(100)}\n`);
    for (const line of lines) house.output.write(line);
    await house.clock.advance(gatherMs);
    await until(() => house.clock.pending > 0, 'the pipe to be found full');
    pipe.read();
    await house.clock.advance(retryMs);
    await untilRead(pipe, lines.join(''));
    expect(house.lost).toBe(0);
  });

  it('drops what does not fit into 1 MiB, and says so', async () => {
    await using pipe = await createPipe();
    const house = new House({ fd: pipe.open('non-blocking'), mayBlock });
    pipe.fill();
    const line = `${'x'.repeat(4095)}\n`;
    for (let count = 0; count < 256; count++) house.output.write(line);
    await house.clock.advance(gatherMs);
    expect(house.lost).toBe(0);
    for (let count = 0; count < 3; count++) house.output.write(line);
    await house.clock.advance(gatherMs);
    expect(house.lost).toBe(3);
  });

  it('loses what can not be written, says so, and goes on', async () => {
    const fd = openSync('/dev/full', 'w');
    const house = new House({ fd, mayBlock });
    for (let round = 1; round <= 3; round++) {
      house.output.write('one\n');
      await house.clock.advance(gatherMs);
      await until(() => house.lost === round, 'the loss to be told');
    }
    closeSync(fd);
  });
});

describe.each([
  ['on another thread', true],
  ['at once', false],
])('The last records, written %s,', (_how, mayBlock) => {
  it('are out when the flush returns, after those that waited', async () => {
    await using pipe = await createPipe();
    const house = new House({ fd: pipe.open('non-blocking'), mayBlock });
    pipe.fill();
    house.output.write('one\n');
    await house.clock.advance(gatherMs);
    await until(() => house.clock.pending > 0, 'the pipe to be found full');
    house.output.write('two\n');
    pipe.read();
    house.output.flushSync();
    expect(pipe.read()).toBe('one\ntwo\n');
    await house.clock.advance(1000);
    expect(pipe.read()).toBe('');
  });

  it('are given up where nobody takes them: the pipe stays full, its reader has gone, the disk is full', async () => {
    await using full = await createPipe();
    full.fill();
    await using left = await createPipe();
    const disk = openSync('/dev/full', 'w');
    const fds = [full.open('non-blocking'), left.open('non-blocking'), disk];
    left.leave();
    for (const fd of fds) {
      const { output } = new House({ fd, mayBlock });
      for (let count = 0; count < 10; count++) output.write(`${'x'.repeat(4000)}\n`);
      const started = performance.now();
      output.flushSync();
      expect(performance.now() - started).toBeLessThan(5000);
    }
    closeSync(disk);
  });
});

describe('what the log is written to', () => {
  it('never blocks where it is a pipe, whatever the pipe was inherited as', async () => {
    await using pipe = await createPipe();
    const inherited = pipe.open('blocking');
    const target = openForLog(inherited);
    expect(target.mayBlock).toBe(false);
    const { output } = new House(target);
    pipe.fill();
    output.write('one\n');
    output.flushSync();
    closeSync(target.fd);
    expect(pipe.read()).not.toContain('one');
  });

  it('is the file itself where it is none', () => {
    const fd = openSync('/dev/null', 'w');
    expect(openForLog(fd)).toEqual({ fd, mayBlock: true });
    closeSync(fd);
  });
});
