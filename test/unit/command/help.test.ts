import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../../../src/command/command-line.js';
import { commandHelp, programHelp } from '../../../src/command/render/help.js';
import { root } from '../../support/documents/sources.js';

const widths = [60, 80, 100];
const folder = join(root, 'test/unit/command/help');

const texts = [
  ['program', (columns: number) => programHelp(commands, columns)],
  ...commands.map((command) => [command.name, (columns: number) => commandHelp(command, columns)] as const),
] as const;

describe('The help', () => {
  it.each(texts)('of %s fits its width, and is as in its golden file (UPDATE_GOLDEN=1 writes it)', (name, help) => {
    const pages = widths.map((columns) => `-- ${columns} columns --\n${help(columns)}\n`);
    for (const [index, page] of pages.entries())
      expect(page.split('\n').filter((line) => line.length > (widths[index] ?? 0))).toEqual([]);
    const path = join(folder, `${name}.txt`);
    if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, pages.join('\n'));
    expect(pages.join('\n')).toBe(readFileSync(path, 'utf8'));
  });
});
