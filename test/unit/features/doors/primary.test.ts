import type { TurnEnd } from '../../../../src/primary/cli/contract/adapter.js';
import { check } from '../../../../src/primary/threads/schema-thread.js';
import type { JobEvent, JobRequest } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all, endOf, jobHarness, turnEnd } from '../../../support/jobs/job-harness.js';

const schema = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}';
const weather = { name: 'weather', description: '', schema };
const offer = { tools: [weather], choice: 'auto', isParallel: true } as const;

/** Runs a job with a program without tools and schemas, which gives these answers. Returns the events and the turns. */
async function answered(answers: readonly string[], more: Partial<JobRequest>, end: Partial<TurnEnd> = {}) {
  let turns = 0;
  const harness = jobHarness({
    script: async (sink) => {
      sink.write(textDelta(answers[turns++] ?? ''));
      return { ...turnEnd, ...end };
    },
  });
  harness.schemas.readValue = async (schema, text) => check({ schema, text });
  const events = await all(harness.run({ isStreamed: true, chain: { before: 'a', asked: 'b' }, ...more }));
  await harness.expectTidy();
  return { text: textOf(events), calls: callsOf(events), end: endOf(events), turns };
}

function textOf(events: readonly JobEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
}

function callsOf(events: readonly JobEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'call-start' ? [event.name] : []));
}

describe('The answer of a model with emulated tools', () => {
  it.each([
    ['Hello, Ada.', 'Hello, Ada.'],
    ['<think>A greeting.</think>\nHello, Ada.', 'Hello, Ada.'],
    ['The config is {"port": 1}.', 'The config is {"port": 1}.'],
    ['Here: {"kind":"text","text":"Hello, Ada."}', 'Hello, Ada.'],
  ])('is its text after one turn, also as prose: %s', async (answer, text) => {
    expect(await answered([answer], { offer })).toMatchObject({ text, calls: [], end: { outcome: 'ok' }, turns: 1 });
  });

  it('may have a thought and a sentence around its call', async () => {
    const call = '{"kind":"call","name":"weather","arguments":{"city":"Ulm"}}';
    const answer = `<think>Call it?</think>I will look.\n\`\`\`json\n${call}`;
    expect(await answered([answer], { offer })).toMatchObject({ calls: ['weather'], turns: 1 });
  });

  it('is repaired if its call has a mistake', async () => {
    const wrong = '{"kind":"call","name":"weather","arguments":{}}';
    const right = '{"kind":"call","name":"weather","arguments":{"city":"Ulm"}}';
    expect(await answered([wrong, right], { offer })).toMatchObject({ calls: ['weather'], turns: 2 });
  });

  it('may not be prose if a call is demanded', async () => {
    const { end, turns } = await answered(['No.', 'No!'], { offer: { ...offer, choice: 'required' } });
    expect([end, turns]).toMatchObject([{ failure: { reason: 'schema_mismatch' } }, 2]);
  });

  it.each([
    ['{"kind":"text","text":"Hello, \\"A', 'Hello, "A'],
    ['{"kind":"text","text":"Hello\\', 'Hello'],
    ['Hello, A', 'Hello, A'],
    ['{"kind":"call","name":"weather","argu', ''],
  ])('is its first piece if it was cut short, and never a piece of a call: %s', async (answer, text) => {
    const cut = await answered([answer], { offer }, { isCutShort: true });
    expect(cut).toMatchObject({ text, calls: [], end: { outcome: 'ok', isCutShort: true }, turns: 1 });
  });
});
