import type { Capabilities } from '../../../../src/primary/cli/contract/adapter.js';
import type { TurnSink } from '../../../../src/primary/cli/process/open-turn.js';
import type { JobEvent, JobRequest, ThoughtDelta, ThoughtEnd } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all, endOf, jobHarness, type Script, turnEnd } from '../../../support/jobs/job-harness.js';

const signed: ThoughtEnd = { type: 'thought-end', signature: 'proof' };
const sealed: ThoughtEnd = { type: 'thought-end', redacted: 'sealed' };
const offer = { tools: [{ name: 'f', description: '', schema: '{}' }], choice: 'auto', isParallel: true } as const;

/** Writes a thought like a process, which withholds it from a sink without thoughts. */
function think(sink: TurnSink, event: ThoughtDelta | ThoughtEnd): void {
  if (sink.hidesThoughts !== true) sink.write(event);
}

/** Returns a script: `~text` is a piece of a thought, `=id` a call, anything else text. */
function plays(...steps: readonly (string | ThoughtEnd)[]): Script {
  const play = (step: string | ThoughtEnd, sink: TurnSink) => {
    if (typeof step !== 'string') think(sink, step);
    else if (step.startsWith('~')) think(sink, { type: 'thought-delta', text: step.slice(1) });
    else if (step.startsWith('=')) sink.write({ type: 'call-start', id: step, name: 'f' });
    else sink.write(textDelta(step));
  };
  const ids = steps.filter((step) => typeof step === 'string' && step.startsWith('=')) as string[];
  const calls = ids.map((id) => ({ id, name: 'f', input: '{}' }));
  return async (sink) => {
    for (const step of steps) play(step, sink);
    return { ...turnEnd, ...(calls.length > 0 && { calls }) };
  };
}

async function eventsOf(script: Script, more: Partial<JobRequest>, extras: Partial<Capabilities> = {}) {
  const known = { tools: 'parallel', toolChoice: true, schema: (text: string) => text } as const;
  const harness = jobHarness({ script, extras: { ...known, ...extras } });
  const events = await all(harness.run({ isStreamed: true, ...more }));
  await harness.expectTidy();
  return events;
}

function saidIn(events: readonly JobEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type === 'text-delta') return [event.text];
    if (event.type === 'thought-delta') return [`~${event.text}`];
    if (event.type === 'thought-end') return [`/${event.signature ?? event.redacted ?? ''}`];
    return event.type === 'call-start' ? [event.id] : [];
  });
}

function thoughtsIn(events: readonly JobEvent[]) {
  const end = endOf(events);
  return end.outcome === 'ok' ? end.thoughts : null;
}

describe('The thoughts of a job', () => {
  it('are sent only to clients that request them', async () => {
    const events = await eventsOf(plays('~Hm', signed, 'Hi'), {});
    expect(saidIn(events)).toEqual(['Hi']);
    expect(endOf(events)).not.toHaveProperty('thoughts');
  });

  it.each([
    ['progress', true, ['~Looking.', '/', '=a', 'Hi']],
    ['progress', undefined, ['=a', 'Hi']],
    [undefined, true, ['=a', 'Hi']],
  ] as const)(
    'that say what the model does reach clients of form %s if the model has such: %s',
    async (thinking, thinksProgress, said) => {
      const rules = { thinking: null, acceptsDemand: true, tokenFactor: 1, ...(thinksProgress && { thinksProgress }) };
      const script = plays('~Looking.', signed, '~', signed, sealed, '=a', 'Hi');
      const events = await eventsOf(script, { offer, ...(thinking && { thinking }) }, { rulesOf: () => rules });
      expect(saidIn(events)).toEqual(said);
      expect(thoughtsIn(events)).toEqual(said.length > 2 ? [{ text: 'Looking.', at: 0, calls: 0 }] : undefined);
    },
  );

  it('ignore additional fields that an adapter sends at their end', async () => {
    const talkative = { ...signed, text: 'all of it', at: 7 };
    const events = await eventsOf(plays('~Hm', talkative, 'Hi'), { thinking: 'omitted' });
    expect(events).toContainEqual(signed);
    expect(thoughtsIn(events)).toEqual([{ text: '', signature: 'proof', at: 0, calls: 0 }]);
  });

  it('are streamed in order, and the end lists them with their places', async () => {
    const script = plays(
      '~Let ',
      '~me see',
      signed,
      sealed,
      'One',
      '~Two',
      signed,
      ' two',
      '~Call',
      signed,
      '=a',
      '~And',
      signed,
      '=b',
    );
    const events = await eventsOf(script, { thinking: 'summarized', offer });
    expect(saidIn(events).join(' ')).toBe(
      '~Let  ~me see /proof /sealed One ~Two /proof  two ~Call /proof =a ~And /proof =b',
    );
    expect(thoughtsIn(events)).toEqual([
      { text: 'Let me see', signature: 'proof', at: 0, calls: 0 },
      { text: '', redacted: 'sealed', at: 0, calls: 0 },
      { text: 'Two', signature: 'proof', at: 3, calls: 0 },
      { text: 'Call', signature: 'proof', at: null, calls: 0 },
      { text: 'And', signature: 'proof', at: null, calls: 1 },
    ]);
  });

  it('end when other output follows, and with the answer', async () => {
    const events = await eventsOf(plays('~A', 'text', '~B', '=c', '~D'), { thinking: 'summarized', offer });
    expect(saidIn(events)).toEqual(['~A', '/', 'text', '~B', '/', '=c', '~D', '/']);
  });

  it('have no text if the client omits it, and are left out if nothing remains to show', async () => {
    const steps = ['~Hm', signed, { type: 'thought-end' }, 'Hi'] as const;
    const omitted = await eventsOf(plays(...steps), { thinking: 'omitted' });
    expect(saidIn(omitted)).toEqual(['/proof', '/', 'Hi']);
    expect(thoughtsIn(omitted)?.map(({ text, signature }) => [text, signature])).toEqual([
      ['', 'proof'],
      ['', undefined],
    ]);
    expect(saidIn(await eventsOf(plays(...steps), { thinking: 'summarized' }))).toEqual(['~Hm', '/proof', 'Hi']);
  });

  it('precede a text that the program corrects', async () => {
    const script: Script = async (sink) => ({
      ...(await plays('Wel', '~Hm', signed, 'come')(sink, new AbortController().signal)),
      text: 'Hi',
    });
    const events = await eventsOf(script, { thinking: 'summarized', isStreamed: false });
    expect(thoughtsIn(events)).toMatchObject([{ text: 'Hm', at: 0 }]);
  });

  it('precede a value, which is checked first', async () => {
    const events = await eventsOf(plays('~Hm', signed, '{"a":1}'), { thinking: 'summarized', schema: '{}' });
    expect(saidIn(events)).toEqual(['~Hm', '/proof', '{"a":1}']);
  });

  it('release text that was held back for a stop sequence', async () => {
    const events = await eventsOf(plays('one E', '~Hm', 'ND'), { thinking: 'summarized', stop: ['END'] });
    expect(saidIn(events)).toEqual(['one ', 'E', '~Hm', '/', 'ND']);
  });

  it('are only in the end if the answer is not streamed', async () => {
    const events = await eventsOf(plays('~Hm', signed, 'Hi'), { thinking: 'summarized', isStreamed: false });
    expect(saidIn(events)).toEqual(['Hi']);
    expect(thoughtsIn(events)).toHaveLength(1);
  });

  it('count as the first piece of an answer for clients that receive them', async () => {
    const harness = jobHarness({
      script: async (sink) => {
        think(sink, { type: 'thought-delta', text: 'Hm' });
        await harness.clock.advance(700);
        sink.write(textDelta('Hi'));
        return turnEnd;
      },
    });
    await all(harness.run({ thinking: 'summarized' }));
    await all(harness.run({}));
    expect(harness.firstDeltas).toEqual([0, 700]);
  });
});
