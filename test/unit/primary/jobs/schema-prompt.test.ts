import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import { askingFor, repairing } from '../../../../src/primary/jobs/structured.js';
import type { Image } from '../../../../src/shared/job.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };
const schema = '{"type":"object"}';
const history = [
  { role: 'user', text: 'Hello' },
  { role: 'assistant', text: 'Hi' },
] as const;
const turn = { ...plainLaunch('m'), schema, system: 'Be brief.', text: 'Who am I?', images: [image], history };

describe('A turn with the schema in its text', () => {
  it('asks the same question, and for nothing but the value', () => {
    const { text, ...rest } = askingFor(turn, schema);
    expect(text).toMatch(/^Who am I\?\n\nAnswer with one JSON value alone.*:\n\{"type":"object"\}$/s);
    expect(rest).toEqual({ ...plainLaunch('m'), system: 'Be brief.', images: [image], history });
  });

  it('is followed by a repair turn whose history has the question and the answer', () => {
    const asked = askingFor(turn, schema);
    const { text, images, history: said, ...rest } = repairing(asked, 'Ada', 'the answer is not JSON');
    expect(text).toContain('That does not fit the schema: the answer is not JSON.');
    expect(images).toEqual([]);
    expect(said).toEqual([
      ...history,
      { role: 'user', text: asked.text, images: [image] },
      { role: 'assistant', text: 'Ada' },
    ]);
    expect(rest).toEqual({ ...plainLaunch('m'), system: 'Be brief.' });
  });
});
