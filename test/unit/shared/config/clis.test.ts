import { spawnSync } from 'node:child_process';
import {
  type CliFamily,
  claudeFamily,
  cliSchemas,
  clisFaults,
  shellWords,
} from '../../../../src/shared/config/clis.js';
import { randomNumbers } from '../../../support/basics/random.js';

describe('A command line', () => {
  it.each<[string, string[]]>([
    ['', []],
    [' \t\n ', []],
    ['a', ['a']],
    ['  a  b\tc\nd ', ['a', 'b', 'c', 'd']],
    [`'a b'`, ['a b']],
    [`"a b"`, ['a b']],
    [`a' 'b" "c`, ['a b c']],
    [`''`, ['']],
    [`"" ''`, ['', '']],
    [`a ''b`, ['a', 'b']],
    [`'"'`, ['"']],
    [`"'"`, ["'"]],
    [`'\\'`, ['\\']],
    [`"\\""`, ['"']],
    [`"\\\\"`, ['\\']],
    [`"\\$\\\`"`, ['$`']],
    [`"\\a"`, ['\\a']],
    [`a\\ b`, ['a b']],
    [`\\'`, ["'"]],
    [`\\\\`, ['\\']],
    ['a\u00a0b\r', ['a\u00a0b\r']],
    ['grüße 🚀', ['grüße', '🚀']],
    ['$HOME *', ['$HOME', '*']],
    [`--x='a b' {model}`, ['--x=a b', '{model}']],
  ])('is split like in a shell: %j', (line, words) => {
    expect(shellWords(line)).toEqual(words);
  });

  it.each([
    [`'`, 1],
    [`"`, 1],
    [`a 'b`, 3],
    [`"a\\"`, 1],
    ['a \\', 3],
    [`'a'"b`, 4],
  ])('is rejected with the position of an unclosed quote: %j', (line, at) => {
    expect(() => shellWords(line)).toThrow(`an open quote or a lone backslash at character ${at}`);
  });

  it('is split like in the shell of this machine, whatever it contains', () => {
    const lines = Array.from({ length: 300 }, (_, seed) => randomLine(seed));
    const shell = shellOf(lines);
    expect(shell).toHaveLength(lines.length);
    const verdicts = lines.map((line, index) => ({ line, ours: oursOf(line), shell: shell[index] }));
    const compared = verdicts.filter(({ line }) => !endsInLoneBackslash(line)); // a shell reads it as a backslash
    expect(compared.filter(({ ours, shell }) => JSON.stringify(ours) !== JSON.stringify(shell))).toEqual([]);
    expect(compared.filter(({ ours }) => ours !== null).length).toBeGreaterThan(100);
    expect(compared.filter(({ ours }) => ours === null).length).toBeGreaterThan(50);
  });
});

/** Pieces without newlines, which end a command, and without characters that a shell expands. */
const pieces = ['a', 'b', 'é', '🚀', '-', '=', '{m}', '/', ' ', '  ', '\t', "'", "'", '"', '"', '\\', '\\\\', '\u00a0'];

function randomLine(seed: number): string {
  const random = randomNumbers(seed);
  const length = Math.floor(random() * 14);
  return Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]).join('');
}

function oursOf(line: string): string[] | null {
  try {
    return shellWords(line);
  } catch {
    return null;
  }
}

/** Returns the words of each line; null if the shell rejects the line. */
function shellOf(lines: readonly string[]): (string[] | null)[] {
  // The word `first` is always present: without arguments, printf would still print a NUL.
  const script = `while IFS= read -r line; do (eval "printf '%s\\0' first $line"); echo " $?"; done`;
  const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8', input: `${lines.join('\n')}\n` });
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((answer) => (answer.endsWith(' 0') ? answer.split('\0').slice(1, -1) : null));
}

function endsInLoneBackslash(line: string): boolean {
  return (/\\*$/.exec(line)?.[0].length ?? 0) % 2 === 1;
}

describe('The kinds of model CLIs', () => {
  const bird = {
    kinds: ['jay', 'wren'],
    commandNeeded: ['wren'],
    example: 'jay*3',
    form: { pattern: /^nest:/, text: 'a nest', summary: 'a nest' },
    findFaults: () => ['it rains'],
  };
  const faultOf = (
    value: string,
    name: 'MODEL_API_CLI' | 'MODEL_API_CLIS',
    families: readonly CliFamily[] = [claudeFamily, bird],
  ) => cliSchemas(families)[name].safeParse(value).error?.issues[0]?.message;

  it('are those of all families, in their order', () => {
    for (const kind of ['auto', 'claude', 'jay', 'wren', 'nest:a'])
      expect(faultOf(kind, 'MODEL_API_CLI')).toBeUndefined();
    const known = 'must be auto, claude, jay or wren, or a nest';
    expect(faultOf('owl', 'MODEL_API_CLI')).toBe(known);
    expect(faultOf('claud', 'MODEL_API_CLI')).toBe(`${known}. Did you mean claude?`);
    expect(faultOf('owl', 'MODEL_API_CLIS')).toBe(
      'must be CLIs such as claude, jay*3; owl is not one of claude, jay, wren',
    );
  });

  it('are claude alone in a core without features', () => {
    expect(faultOf('jay', 'MODEL_API_CLI', [claudeFamily])).toBe('must be auto or claude');
    expect(faultOf('jay', 'MODEL_API_CLIS', [claudeFamily])).toBe(
      'must be CLIs such as claude; jay is not one of claude',
    );
  });

  it('have the faults that their families find, and need a command if they have no program', () => {
    const { data = [] } = cliSchemas([claudeFamily, bird]).MODEL_API_CLIS.safeParse('jay,wren');
    expect(clisFaults({ MODEL_API_CLIS: data }, [claudeFamily, bird])).toEqual([
      'MODEL_API_CLIS: wren needs its command, as in wren=wren:program --flag',
      'it rains',
    ]);
  });
});
