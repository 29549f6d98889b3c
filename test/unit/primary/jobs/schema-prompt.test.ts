import { plainLaunch, type TurnEnd } from '../../../../src/primary/cli/contract/adapter.js';
import { askingFor, repairing } from '../../../../src/primary/jobs/structured.js';
import { check } from '../../../../src/primary/threads/schema-thread.js';
import type { Image } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all, endOf, jobHarness, turnEnd } from '../../../support/jobs/job-harness.js';

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

/** Runs a job with a program without schemas, which gives this answer. */
async function answered(answer: string, more: Partial<TurnEnd> = {}) {
  let turns = 0;
  const harness = jobHarness({
    script: async (sink) => {
      turns++;
      sink.write(textDelta(answer));
      return { ...turnEnd, ...more };
    },
  });
  harness.schemas.readValue = async (schema, text) => check({ schema, text });
  const citySchema = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}';
  const events = await all(harness.run({ isStreamed: true, chain: { before: 'a', asked: 'b' }, schema: citySchema }));
  await harness.expectTidy();
  const text = events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
  return { text, end: endOf(events), turns };
}

describe('The value of a model whose schema is in the prompt', () => {
  it('is its first piece after one turn if it was cut short', async () => {
    const cut = await answered('{"city":"U', { isCutShort: true });
    expect(cut).toMatchObject({ text: '{"city":"U', end: { outcome: 'ok', isCutShort: true }, turns: 1 });
  });

  it('may have a thought and sentences around it', async () => {
    const answer = 'Thinking...\nUlm?\n...done thinking.\n\nIt is {"city":"Ulm"}, I think.';
    expect(await answered(answer)).toMatchObject({ text: '{"city":"Ulm"}', turns: 1 });
  });
});
