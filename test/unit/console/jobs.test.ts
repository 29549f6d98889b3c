import { consolePart } from '../../support/clients/console-parts.js';

interface WordsPart {
  timesText(job: object): string;
  titleOf(job: object): string;
  answerOf(result: object): object;
}

describe('The text about a background job', () => {
  it('shows how long it waited and ran so far', async () => {
    const { timesText } = await consolePart<WordsPart>('jobs/page.mjs');
    const at = (second: number) => new Date(second * 1000).toISOString();
    const times = { created_at: at(0), started_at: null, ended_at: null };
    expect(timesText(times)).toBe('');
    expect(timesText({ ...times, started_at: at(2) })).toBe('waited 2.0 s');
    expect(timesText({ ...times, started_at: at(2), ended_at: at(42) })).toBe('waited 2.0 s, ran 40 s');
    expect(timesText({ ...times, ended_at: at(2) })).toBe('waited 2.0 s');
  });

  it('shows its title, or otherwise its id', async () => {
    const { titleOf } = await consolePart<WordsPart>('jobs/page.mjs');
    expect(titleOf({ job_id: 'j1', title: 'Sum up' })).toBe('Sum up');
    for (const title of [undefined, '', '  ']) expect(titleOf({ job_id: 'j1', title })).toBe('Job j1');
  });

  const thought = { summary: [{ text: 'Let me' }, { text: 'see' }] };
  const response = (item: object) => ({ object: 'response', output: [item] });

  it.each<[object, string, object]>([
    [{ response: 'Hello', conversation_id: 'c' }, 'Hello', { conversationId: 'c' }],
    [{ response: '{}', structured: {} }, '{}', { value: {} }],
    [{ response: 'Hello', thoughts: 'Well' }, 'Hello', { thoughts: 'Well' }],
    [response(thought), '', { thoughts: 'Let me\n\nsee' }],
    [response({ content: [{ text: 'Hel' }, { text: 'lo' }] }), 'Hello', {}],
    [response({ arguments: '{"a":1}' }), '{"a":1}', {}],
  ])('shows its answer, in any format: %j', async (result, text, more) => {
    const { answerOf } = await consolePart<WordsPart>('jobs/page.mjs');
    expect(answerOf(result)).toEqual({ value: undefined, thoughts: '', conversationId: null, text, ...more });
  });
});
