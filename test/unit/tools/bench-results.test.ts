import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sectionIn } from '../../../bench/support/results.js';
import { root } from '../../support/documents/sources.js';

const page = '# Results\n\n## Speed and cost\n\n### one\n\nold\n\n### two\n\nkept\n\n## Faults\n\n### one\n\nby hand\n';

describe('The page of results', () => {
  it('gets a new section in place of the old one, and the others are unchanged', () => {
    expect(sectionIn(page, 'one', 'new\n')).toBe(page.replace('old', 'new'));
    expect(sectionIn(page, 'two', 'new\n')).toBe(page.replace('kept', 'new'));
  });

  it('gets a new section at the end of its part', () => {
    expect(sectionIn(page, 'three', 'new\n')).toBe(page.replace('## Faults', '### three\n\nnew\n\n## Faults'));
  });

  it('is rejected without its part', () => {
    expect(() => sectionIn('# Results\n', 'one', 'new\n')).toThrow('Speed and cost');
  });

  it('is unchanged when its current sections are written again', () => {
    const text = readFileSync(join(root, 'bench', 'RESULTS.md'), 'utf8');
    const [, throughput = ''] = /^### throughput\n\n([\s\S]*?)\n(?=##)/m.exec(text) ?? [];
    expect(throughput).toContain('bare spawns');
    expect(sectionIn(text, 'throughput', throughput)).toBe(text);
  });
});
