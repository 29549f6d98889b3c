import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../../../src/command/command-line.js';
import { manualText } from '../../../tools/manual-text.js';
import { root } from '../../support/documents/sources.js';

describe('The manual', () => {
  const committed = readFileSync(join(root, 'man', 'prompt-relay.1'), 'utf8');

  it('matches the table of commands: npm run manual', () => {
    expect(committed).toBe(manualText(commands));
  });

  it('has every command and every flag, and no line that roff would read as a request', () => {
    for (const { name, flags } of commands) {
      expect(committed).toContain(`.SS prompt\\-relay ${name}`);
      for (const flag of Object.keys(flags)) expect(committed).toContain(`\\-\\-${flag.replaceAll('-', '\\-')}`);
    }
    const requests = committed.split('\n').flatMap((line) => /^[.'](\S*)/.exec(line)?.[1] ?? []);
    expect(new Set(requests)).toEqual(new Set(['\\"', 'TH', 'SH', 'SS', 'B', 'PP', 'TP', 'EX', 'EE']));
    expect(committed).toMatch(/^[\n\x20-\x7e]+$/);
  });

  it('is part of the package', () => {
    expect(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).man).toBe('man/prompt-relay.1');
  });
});
