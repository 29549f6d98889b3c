import type { TurnEnd } from '../../../../src/primary/cli/contract/adapter.js';
import type { JobEvent, JobRequest } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all, endOf, jobHarness, type Script, turnEnd } from '../../../support/jobs/job-harness.js';

const offer = { tools: [{ name: 'f', description: '', schema: '{}' }], choice: 'auto', isParallel: true } as const;
const chain = { before: 'a', asked: 'b' };

/**
 * Returns the events of a job whose program streams these pieces and ends its turn with `end`. A piece such as `=id` is
 * a call.
 */
async function eventsOf(pieces: readonly string[], end: Partial<TurnEnd>, more: Partial<JobRequest> = {}) {
  const script: Script = async (sink) => {
    for (const piece of pieces) {
      if (piece.startsWith('=')) sink.write({ type: 'call-start', id: piece.slice(1), name: 'f' });
      else sink.write(textDelta(piece));
    }
    return { ...turnEnd, ...end };
  };
  const harness = jobHarness({ script, extras: { tools: 'parallel', toolChoice: true, schema: (text) => text } });
  const events = await all(harness.run({ isStreamed: true, ...more }));
  await harness.expectTidy();
  return events;
}

function textOf(events: readonly JobEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
}

function callsOf(events: readonly JobEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'call-start' ? [event.id] : []));
}

const broken = { outcome: 'cli_error', failure: { reason: 'answer_broken' } };
const call = (id: string) => ({ id, name: 'f', input: '{}' });

describe('A final answer that differs from the streamed pieces', () => {
  it('completes a stream that has sent its beginning', async () => {
    const events = await eventsOf(['Hello', ', A'], { text: 'Hello, Ada' });
    expect(textOf(events)).toBe('Hello, Ada');
    expect(endOf(events)).toMatchObject({ outcome: 'ok', text: null });
  });

  it('is completed up to its stop sequence', async () => {
    const events = await eventsOf(['one S'], { text: 'one STOP two' }, { stop: ['STOP'] });
    expect(textOf(events)).toBe('one ');
    expect(endOf(events)).toMatchObject({ outcome: 'ok', stopSequence: 'STOP' });
  });

  it('fails a stream that has sent other text, and replaces the text of a plain answer', async () => {
    expect(endOf(await eventsOf(['Good day'], { text: 'Hello, Ada' }))).toMatchObject(broken);
    const plain = await eventsOf(['Good day'], { text: 'Hello, Ada' }, { isStreamed: false });
    expect(endOf(plain)).toMatchObject({ outcome: 'ok', text: 'Hello, Ada' });
  });

  it('has the messages of the user at its begin, because their places in it are unknown', async () => {
    const script =
      (text: string | null): Script =>
      async (sink) => {
        sink.write(textDelta('One'));
        sink.added?.('Go on.');
        sink.write(textDelta('Two'));
        return { ...turnEnd, text };
      };
    const additionsOf = async (text: string | null) =>
      (await jobHarness({ script: script(text) }).finish({ isStreamed: false })) as { additions?: unknown };
    expect(await additionsOf(null)).toMatchObject({ additions: [{ at: 3, text: 'Go on.' }] });
    expect(await additionsOf('{"a":2}')).toMatchObject({ additions: [{ at: 0, text: 'Go on.' }] });
  });

  it('counts as equal if only its whitespace differs', async () => {
    const events = await eventsOf(['Hello,  Ada\n'], { text: 'Hello, Ada' });
    expect(endOf(events)).toMatchObject({ outcome: 'ok', text: null });
  });

  it('sends its calls after the rest of its text', async () => {
    const end = { text: 'I look.', calls: [call('a'), call('b')] };
    const events = await eventsOf(['I l'], end, { offer, chain });
    expect([textOf(events), callsOf(events)]).toEqual(['I look.', ['a', 'b']]);
  });

  it('fails a stream that has sent a call which the final answer does not contain', async () => {
    const end = { text: 'I look.', calls: [call('b')] };
    expect(endOf(await eventsOf(['I look.', '=a'], end, { offer, chain }))).toMatchObject(broken);
  });
});

describe('An answer that the model refuses to continue', () => {
  const refusal = { category: 'cyber', explanation: null };

  it('fails with the model, the tokens, the category and the calls that were sent', async () => {
    const usage = { ...turnEnd.usage, inputTokens: 18, outputTokens: 7 };
    const end = { refusal, usage, calls: [call('a'), call('b')] };
    const events = await eventsOf(['Well.', '=a'], end, { offer, chain });
    expect(textOf(events)).toBe('Well.');
    expect(endOf(events)).toMatchObject({
      outcome: 'cli_error',
      failure: { reason: 'refused', message: 'the model declines to answer: cyber' },
      answer: { usage, refusal, calls: [call('a')] },
    });
  });

  it('includes the text held back for a stop sequence, and is not added to a conversation', async () => {
    const events = await eventsOf(['one S'], { refusal }, { operation: 'chat', stop: ['STOP'] });
    expect(textOf(events)).toBe('one S');
    expect(endOf(events)).not.toHaveProperty('conversation');
  });
});

describe('A value that is cut short', () => {
  const schema = '{"type":"object"}';

  it.each([{}, { chain }])('is its first piece, marked as cut short: %j', async (more) => {
    const events = await eventsOf(['{"a":'], { isCutShort: true }, { schema, ...more });
    expect([textOf(events), endOf(events)]).toMatchObject(['{"a":', { outcome: 'ok', isCutShort: true }]);
  });

  it('is a piece of the value without the object in which a program has to wrap it', async () => {
    const list = '{"type":"object","anyOf":[{"required":["a"]}]}';
    const events = await eventsOf([], { text: ' {"input": {"a":[1', isCutShort: true }, { schema: list });
    expect(textOf(events)).toBe('{"a":[1');
  });
});
