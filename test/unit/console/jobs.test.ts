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

  it('shows its answer, in any format', async () => {
    const { answerOf } = await consolePart<WordsPart>('jobs/page.mjs');
    const none = { value: undefined, thoughts: '', conversationId: null };
    expect(answerOf({ response: 'Hello', conversation_id: 'c' })).toEqual({
      ...none,
      text: 'Hello',
      conversationId: 'c',
    });
    expect(answerOf({ response: '{}', structured: {} })).toEqual({ ...none, text: '{}', value: {} });
    expect(answerOf({ response: 'Hello', thoughts: 'Well' })).toEqual({ ...none, text: 'Hello', thoughts: 'Well' });
    const thought = { summary: [{ text: 'Let me' }, { text: 'see' }] };
    expect(answerOf({ object: 'response', output: [thought] })).toEqual({
      ...none,
      text: '',
      thoughts: 'Let me\n\nsee',
    });
    const message = { object: 'response', output: [{ content: [{ text: 'Hel' }, { text: 'lo' }] }] };
    expect(answerOf(message)).toEqual({ ...none, text: 'Hello' });
    expect(answerOf({ object: 'response', output: [{ arguments: '{"a":1}' }] })).toEqual({ ...none, text: '{"a":1}' });
  });
});
