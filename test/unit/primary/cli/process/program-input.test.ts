import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { ProgramInput } from '../../../../../src/primary/cli/process/program-input.js';

const long = 'aé漢😀'.repeat(300_000);

describe('The input of a program', () => {
  it('arrives whole and in order, however long its texts are, and ends after the last one', async () => {
    const stdin = new PassThrough();
    const received = textOf(stdin);
    const input = new ProgramInput(stdin);
    for (const text of ['first\n', long, 'short\n', long]) input.write(text);
    input.end();
    expect(await received).toBe(`first\n${long}short\n${long}`);
  });

  it('is made while it is written, if its pieces come from a generator', async () => {
    const made: number[] = [];
    const written: string[] = [];
    const pieces = function* () {
      for (let index = 0; index < 3; index++) {
        made.push(written.length);
        yield `piece ${index}\n`;
      }
    };
    const write = (chunk: string, _: string, done: () => void) => {
      written.push(chunk);
      done();
    };
    const stdin = new Writable({ decodeStrings: false, write });
    const input = new ProgramInput(stdin);
    input.write(pieces());
    input.write('last\n');
    input.end();
    await once(stdin, 'finish');
    expect(written).toEqual(['piece 0\n', 'piece 1\n', 'piece 2\n', 'last\n']);
    expect(made).toEqual([0, 1, 2]);
  });

  it('is written in short pieces, each in its own turn of the event loop', async () => {
    const lengths: number[] = [];
    let isOver = false;
    let turns = 0;
    const count = () => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    const write = (chunk: string, _: string, done: () => void) => {
      lengths.push(chunk.length);
      done();
    };
    const stdin = new Writable({ decodeStrings: false, write });
    const input = new ProgramInput(stdin);
    input.write(long);
    input.end();
    count();
    await once(stdin, 'finish');
    isOver = true;
    expect(Math.max(...lengths)).toBeLessThanOrEqual(256 * 1024);
    expect(turns).toBeGreaterThanOrEqual(lengths.length - 1);
  });

  it('is dropped if the program no longer reads', async () => {
    const pieces: string[] = [];
    const stdin = new Writable({ decodeStrings: false, write: (piece: string) => void pieces.push(piece) });
    stdin.on('error', () => {});
    const input = new ProgramInput(stdin);
    input.write(long);
    input.write('more');
    const closed = new Promise((resolve) => stdin.once('close', resolve));
    stdin.destroy(new Error('write EPIPE'));
    await closed;
    input.write('even more');
    input.end();
    expect(pieces).toHaveLength(1);
  });
});
