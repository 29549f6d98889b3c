import type { Capabilities } from '../../../../src/primary/cli/contract/adapter.js';
import type { TurnSink } from '../../../../src/primary/cli/process/open-turn.js';
import type { FileDocument, JobEvent, JobRequest, PassageCited } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all, endOf, jobHarness, type Script, turnEnd } from '../../../support/jobs/job-harness.js';

const document: FileDocument = { mediaType: 'text/plain', data: 'SGk=', at: 0, name: '', digest: 'x', citations: true };
const passage = (id: number): PassageCited => ({ type: 'passage', passage: { id } });
const block: PassageCited = { type: 'passage', passage: null };

type Step = string | PassageCited;

function plays(steps: readonly Step[], text: string | null = null): Script {
  const play = (step: Step, sink: TurnSink) => sink.write(typeof step === 'string' ? textDelta(step) : step);
  return async (sink) => {
    for (const step of steps) play(step, sink);
    return { ...turnEnd, text };
  };
}

async function eventsOf(script: Script, more: Partial<JobRequest> = {}): Promise<JobEvent[]> {
  const harness = jobHarness({ script, extras: { document: () => '', wishes: ['citations'] } });
  const events = await all(harness.run({ isStreamed: true, images: [document], ...more }));
  await harness.expectTidy();
  return events;
}

function blocksIn(events: readonly JobEvent[]) {
  const end = endOf(events);
  return end.outcome === 'ok' ? end.blocks : null;
}

const steps = [block, 'I read ', block, 'green', passage(1), passage(2), block, '.', block];

describe('The passages that an answer cites', () => {
  it('are streamed between its pieces, and the end has them with the places of their blocks', async () => {
    const events = await eventsOf(plays(steps));
    const shown = events.flatMap((event): Step[] => {
      if (event.type === 'text-delta') return [event.text];
      return event.type === 'passage' ? [event] : [];
    });
    expect(shown).toEqual(steps);
    expect(blocksIn(events)).toEqual([
      { at: 0, passages: [] },
      { at: 7, passages: [{ id: 1 }, { id: 2 }] },
      { at: 12, passages: [] },
    ]);
  });

  it('are in the end alone if the answer is not streamed', async () => {
    const events = await eventsOf(plays(steps), { isStreamed: false });
    expect(events.some(({ type }) => type === 'passage')).toBe(false);
    expect(blocksIn(events)).toHaveLength(3);
  });

  it('come after the text that could have been a stop sequence', async () => {
    const events = await eventsOf(plays([block, 'EN', passage(1), block, 'D']), { stop: ['END'] });
    expect(blocksIn(events)).toEqual([
      { at: 0, passages: [{ id: 1 }] },
      { at: 2, passages: [] },
    ]);
  });

  it('have one block at each place, however often the program begins one', async () => {
    const events = await eventsOf(plays([...Array(50).fill(block), 'a', passage(1), block, block, 'b']));
    expect(events.filter(({ type }) => type === 'passage')).toEqual([block, passage(1), block]);
    expect(blocksIn(events)).toEqual([
      { at: 0, passages: [{ id: 1 }] },
      { at: 1, passages: [] },
    ]);
  });

  it('have no places in a text that the program has corrected', async () => {
    const events = await eventsOf(plays(steps, 'other'), { isStreamed: false });
    expect(blocksIn(events)).toEqual([{ at: 0, passages: [{ id: 1 }, { id: 2 }] }]);
  });

  it('are not in the end if there are none', async () => {
    expect(blocksIn(await eventsOf(plays([block, 'a', block, 'b'])))).toBeUndefined();
  });

  it('are reported as ignored if the program cannot cite', async () => {
    const harness = jobHarness({ script: plays(['Hi']) });
    const [admitted] = await all(harness.run({ images: [document], chain: { before: '', asked: 'a' } }));
    expect(admitted).toMatchObject({ type: 'job-admitted', ignores: ['citations'] });
    const [silent] = await eventsOf(plays(['Hi']), { chain: { before: '', asked: 'a' } });
    expect(silent).not.toHaveProperty('ignores');
  });
});

describe('A document that no feature reads', () => {
  const results = [{ id: 'call_1', text: 'found', isError: false, images: [document] }];
  const native = { document: () => '' };
  const sent = { role: 'user', text: 'Hi', images: [document] } as const;
  const endWith = (extras: Capabilities, request: Partial<JobRequest>) => {
    const harness = jobHarness({ extras });
    harness.readsDocuments = false;
    return harness.finish(request);
  };

  it.each([
    ['in a question', {}, { images: [document] }],
    ['in a history', {}, { history: [sent] }],
    ['in a result of a tool', native, { results }],
  ] as const)('ends the job with the cause if its program cannot take it: %s', async (_, extras, request) => {
    const message = expect.stringContaining('this service takes no documents');
    expect(await endWith(extras, request)).toMatchObject({ failure: { code: 'validation_error', message } });
  });

  it('is passed to a program that takes it', async () => {
    expect(await endWith(native, { images: [document] })).toMatchObject({ outcome: 'ok' });
  });

  it('is a refusal, and no fault of the service', async () => {
    const harness = jobHarness({ extras: {} });
    harness.readsDocuments = false;
    await harness.finish({ history: [sent] });
    expect(harness.outcomes()).toEqual([]);
    await harness.expectTidy();
  });
});
