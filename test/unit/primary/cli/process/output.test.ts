import type { Exit } from '../../../../../src/primary/cli/contract/adapter.js';
import { ProgramOutput, printable } from '../../../../../src/primary/cli/process/output.js';
import { Redactor } from '../../../../../src/primary/cli/process/redactor.js';
import { noSecrets, ScriptedTree, silentObserver } from '../../../../support/agents/scripted-cli.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';
import { settled } from '../../../../support/basics/settled.js';

function listen(clock = new FakeClock(), redactor = noSecrets) {
  const tree = new ScriptedTree();
  const texts: string[] = [];
  const exits: Exit[] = [];
  const counted = { stdout: 0, stderr: 0 };
  const listener = { text: (text: string) => texts.push(text), end: (exit: Exit) => exits.push(exit) };
  const observer = {
    ...silentObserver,
    output: (stream: 'stdout' | 'stderr', bytes: number) => {
      counted[stream] += bytes;
    },
  };
  const output = new ProgramOutput(tree.child, listener, { clock, observer, redactor });
  return { clock, tree, output, texts, exits, counted };
}

describe('The output of a program', () => {
  it('has no split character, however it is chunked', async () => {
    const { tree, output, texts } = listen();
    output.startReading();
    for (const byte of Buffer.from('ä€😀\n')) await tree.say(Buffer.of(byte));
    expect(texts).toEqual(['ä', '€', '😀', '\n']);
  });

  it('has a replacement character if the program ends within a character', async () => {
    const { tree, output, texts } = listen();
    output.startReading();
    await tree.say(Buffer.from('a€').subarray(0, 3));
    await tree.exit(0);
    expect(texts.join('')).toBe('a\ufffd');
  });

  it('is counted in bytes, separately for each stream', async () => {
    const { tree, output, counted } = listen();
    output.startReading();
    tree.stderr.write('warning');
    await tree.say('€');
    expect(counted).toEqual({ stdout: 3, stderr: 7 });
  });

  it('continues if the program has closed its stdin', async () => {
    const { tree, output, texts } = listen();
    output.startReading();
    tree.stdin.destroy(new Error('write EPIPE'));
    await tree.say('still here');
    expect(texts).toEqual(['still here']);
  });
});

describe('The exit of a program', () => {
  it('is reported once, after all of its output, with its stderr', async () => {
    const { clock, tree, output, texts, exits } = listen();
    output.startReading();
    tree.stderr.write('out of luck');
    tree.stdout.write('half an answer');
    await tree.exit(3);
    expect([texts, exits]).toEqual([['half an answer'], [{ code: 3, signal: null, stderr: 'out of luck' }]]);
    await clock.advance(10_000);
    expect([exits.length, clock.pending]).toEqual([1, 0]);
  });

  it('waits for a slow reader who also pauses after the exit', async () => {
    const { clock, tree, output, exits } = listen();
    output.startReading();
    await tree.exitAndLeave(0);
    await clock.advance(99);
    output.pause();
    await clock.advance(10_000);
    expect([exits, clock.pending]).toEqual([[], 0]);
    output.startReading();
    await clock.advance(100);
    expect(exits).toHaveLength(1);
  });

  it('is reported after a quiet moment if another process holds stdout, and later output is ignored', async () => {
    const { clock, tree, output, texts, exits } = listen();
    output.startReading();
    await tree.exitAndLeave(0);
    await clock.advance(99);
    await tree.say('almost');
    await clock.advance(99);
    await tree.say('quite');
    expect(exits).toEqual([]);
    await clock.advance(100);
    expect([texts, exits.length, clock.pending]).toEqual([['almost', 'quite'], 1, 0]);
    await tree.say('a daemon speaks');
    expect([texts.length, exits.length]).toEqual([2, 1]);
  });

  it('is delayed once more after the quiet moment: on a busy host the timer may fire before the output arrives', async () => {
    const timers: (() => void)[] = [];
    class HeldClock extends FakeClock {
      override after(_ms: number, action: () => void) {
        timers.push(action);
        return () => {};
      }
    }
    const { tree, output, texts, exits } = listen(new HeldClock());
    output.startReading();
    await tree.exitAndLeave(0);
    timers.at(-1)?.();
    tree.stdout.write('the answer');
    await settled();
    expect([texts, exits]).toEqual([['the answer'], []]);
    timers.at(-1)?.();
    await settled();
    expect(exits).toHaveLength(1);
  });

  it('is reported for a program whose output was not requested yet', async () => {
    const { clock, tree, exits } = listen();
    await tree.say('a greeting');
    await tree.exit(null, 'SIGSEGV');
    await clock.advance(100);
    expect(exits).toEqual([{ code: null, signal: 'SIGSEGV', stderr: '' }]);
  });
});

describe('The stderr of a program', () => {
  const secret = { name: 'TOKEN', value: 'a-secret-of-the-operator' };

  async function stderrOf(...chunks: readonly (string | Buffer)[]): Promise<string | undefined> {
    const { tree, output, exits } = listen(new FakeClock(), new Redactor([secret], () => false));
    output.startReading();
    for (const chunk of chunks) tree.stderr.write(chunk);
    await settled();
    await tree.exit(1);
    return exits[0]?.stderr;
  }

  it('is stored in full while there is space', async () => {
    expect(await stderrOf()).toBe('');
    expect(await stderrOf('abc', 'def')).toBe('abcdef');
  });

  it('is stored up to its last 4096 bytes, however they are chunked', async () => {
    expect(await stderrOf('ab', 'x'.repeat(100_000), 'yz')).toBe(`${'x'.repeat(4094)}yz`);
    expect(await stderrOf('x'.repeat(4095), 'a', 'b')).toBe(`${'x'.repeat(4094)}ab`);
  });

  it.each([
    [['it is a-secret-of-', 'the-operator', ', no?'], 'it is [TOKEN], no?'],
    [['it is a-secret-\x1b[1mof-the-operator'], 'it is [TOKEN]'],
    [['it is a-secret-of-the-oper'], 'it is [TOKEN]'],
    [['a-secret-of-the-operator', 'x'.repeat(4090)], `[TOKEN]${'x'.repeat(4090)}`],
    [['a-secret-of-the-operator', 'x'.repeat(4096)], 'x'.repeat(4096)],
    [['y'.repeat(10_000), 'a-secret-of-the-operator'.repeat(300)], '[TOKEN]'.repeat(171)],
  ])('contains no secret, however it is chunked: %#', async (chunks, stderr) => {
    expect(await stderrOf(...chunks)).toBe(stderr);
  });

  it('retains a character that was split between two chunks', async () => {
    expect(await stderrOf(...Array.from(Buffer.from('grüße 🚀'), (byte) => Buffer.of(byte)))).toBe('grüße 🚀');
  });
});

describe('Printable text', () => {
  const spinner = '\x1b[?2026h\x1b[?25l\x1b[1Gpulling ⠋ \x1b[K\x1b[?25h\x1b[?2026l\rpulling ⠙ \x1b[K\r';

  it.each([
    ['colours and control characters, but line ends', '\x1b[1;31mred\x1b[0m\r\nnext\0\x07\x7f\u009b\n', 'red\nnext\n'],
    ['what turns a spinner and hides the cursor', spinner, 'pulling ⠋ \npulling ⠙ \n'],
    [
      'what sets a title or chooses a character set',
      '\x1b]0;a title\x07\x1b(BError: no such model\n',
      'Error: no such model\n',
    ],
    ['a title that ends the other way', '\x1b]2;a title\x1b\\hello', 'hello'],
  ])('omits %s', (_, text, printed) => {
    expect(printable(Buffer.from(text))).toBe(printed);
  });
});
