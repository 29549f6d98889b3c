import { withoutEcho } from '../../../../src/primary/jobs/echo.js';
import { processorMs } from '../../../support/processes/processor-time.js';

const leftOut = '[a line that repeats the prompt]';

describe('The stderr of a program, without echoes of the prompt', () => {
  it.each<[string, string, readonly string[], string]>([
    [
      'what is no echo',
      'Traceback\nError: the disk is full',
      ['tell me of disks'],
      'Traceback\nError: the disk is full',
    ],
    ['nothing where it was told nothing', 'oom', [], 'oom'],
    ['no line that holds the whole of a short text', 'got: secret\nno', ['secret\n'], `${leftOut}\nno`],
    ['no line that is a part of a text', 'secret\nno', ['the\nsecret\nis'], `${leftOut}\nno`],
    ['no line that has a long run of a text in it', 'E: "es, the safe is open" ?', ['Yes, the safe is open.'], leftOut],
    ['a line for any number of such lines', 'a secret\nb secret\nend', ['secret'], `${leftOut}\nend`],
    ['no line of an earlier text', 'heard: my name is Ada Lovelace', ['And?', 'Hello, my name is Ada Byron'], leftOut],
    ['what is too short to tell anything', 'this is it', ['hi', 'is'], 'this is it'],
  ])('retains %s', (_, stderr, texts, kept) => {
    expect(withoutEcho(stderr, texts)).toBe(kept);
  });

  it('is compared with the start and the end of a long text quickly', () => {
    const middle = 'nothing to see here. '.repeat(500_000);
    const texts = [`It begins with one secret ${middle} and ends with another`, ...Array(1000).fill(middle)];
    const startedMs = processorMs();
    expect(withoutEcho('It begins with one\nand ends with another\nfailed', texts)).toBe(`${leftOut}\nfailed`);
    expect(processorMs() - startedMs).toBeLessThan(500);
  });
});
