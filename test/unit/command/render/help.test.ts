import { exitCodes } from '../../../../src/command/base/errors.js';
import { commands } from '../../../../src/command/command-line.js';
import { commandHelp, exitMeanings, programHelp } from '../../../../src/command/render/help.js';
import { shellWords } from '../../../../src/shared/config/clis.js';

const widths = [40, 60, 72, 80, 100];

describe('The help', () => {
  it.each(widths)('fits into %s columns, and splits no word', (columns) => {
    const pages = [programHelp(commands, columns), ...commands.map((command) => commandHelp(command, columns))];
    const wide = programHelp(commands, 400).split(/\s+/);
    for (const line of pages.flatMap((page) => page.split('\n'))) {
      const isOneWord = /^\s*('[^']*'|\S+)( \\)?$/.test(line);
      if (!isOneWord) expect([line, line.length <= columns]).toEqual([line, true]);
      expect(line).toBe(line.trimEnd());
    }
    expect(pages[0]?.split(/\s+/)).toEqual(wide);
  });

  it('has an example for every command, which names it', () => {
    for (const { name, examples } of commands) {
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) expect(example).toContain(`prompt-relay ${name}`);
    }
  });

  it('wraps an example so that a shell reads it as one line', () => {
    const [ask] = commands.filter(({ name }) => name === 'ask');
    if (ask === undefined) throw new Error('there is no ask');
    const narrow = commandHelp(ask, 40).split('Examples:')[1] ?? '';
    expect(narrow).toContain(' \\\n');
    expect(shellWords(narrow.replaceAll('\\\n', ' ').trim())).toEqual(shellWords(ask.examples.join(' ')));
  });

  it('has the meaning of every exit code', () => {
    expect(exitMeanings.map(([code]) => code)).toEqual(Object.values(exitCodes).toSorted((a, b) => a - b));
  });

  it('uses each flag letter once per command', () => {
    for (const { flags } of commands) {
      const letters = Object.values(flags).flatMap(({ short }) => short ?? []);
      expect(new Set(['h', ...letters]).size).toBe(letters.length + 1);
    }
  });
});
