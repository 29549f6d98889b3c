import type { Capabilities } from '../../../../src/primary/cli/contract/adapter.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { cliError } from '../../../../src/shared/errors.js';
import type { Image, JobDone, JobEvent, JobRequest, Message } from '../../../../src/shared/job.js';
import { chained, chainStart } from '../../../../src/shared/text/chain.js';
import { settled } from '../../../support/basics/settled.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import {
  all,
  endOf,
  type JobHarness,
  type JobOptions,
  jobHarness,
  type Script,
  turnEnd,
  usage,
} from '../../../support/jobs/job-harness.js';

const schema = '{"type":"object"}';
const knowsSchemas: Capabilities = { schema: (text) => text };
const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };
const nothing = { inputTokens: null, outputTokens: null, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };

/** Returns a script that writes these pieces until it is aborted. */
function says(...pieces: readonly string[]): Script {
  return async (sink) => {
    for (const piece of pieces) if (!sink.hasEnough) sink.write(textDelta(piece));
    return turnEnd;
  };
}

/** Creates a harness whose processes run these scripts, one each. */
function harnessOf(scripts: readonly Script[], options: JobOptions = {}): JobHarness {
  return jobHarness({ script: scripts, ...options });
}

function textsOf(events: readonly JobEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []));
}

function doneOf(events: readonly JobEvent[]): JobDone {
  const end = endOf(events);
  if (end.outcome !== 'ok') throw new Error(end.failure.message);
  return end;
}

it('A job whose process is killed before it writes anything fails without a second attempt, because the model may already have received the request', async () => {
  const crash: Script = () => Promise.reject(cliError('crashed', 'the model CLI was ended by SIGKILL'));
  const harness = harnessOf([crash, says('Noted.')]);
  const end = await harness.finish({ isStreamed: true });
  expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'crashed' } });
  expect(harness.processes).toHaveLength(1);
  await harness.expectTidy();
});

describe('A job with a schema', () => {
  it('passes the schema to a program that supports schemas, and sends the value in one piece', async () => {
    const harness = harnessOf([says('{"a":', '1}')], { extras: knowsSchemas });
    const events = await all(harness.run({ schema, text: 'Hi', isStreamed: true }));
    expect(textsOf(events)).toEqual(['{"a":1}']);
    expect(doneOf(events)).toMatchObject({ text: null, model: 'eliza', usage });
    expect(harness.processes[0]?.turns[0]).toMatchObject({ schema, text: 'Hi' });
    await harness.expectTidy();
  });

  it('sends nothing before the whole value has been checked', async () => {
    const harness = harnessOf([says('{"a":', '1}')], { extras: knowsSchemas });
    const { promise, resolve } = withResolvers();
    harness.schemas.readValue = (_schema, value) => promise.then(() => ({ kind: 'fits', value }));
    const seen: JobEvent[] = [];
    const reading = (async () => {
      for await (const event of harness.run({ schema, isStreamed: true })) seen.push(event);
    })();
    await settled();
    expect(seen.map(({ type }) => type)).toEqual(['job-admitted', 'job-start']);
    resolve();
    await reading;
    expect(textsOf(seen)).toEqual(['{"a":1}']);
  });

  it('releases its slot when it times out, without waiting for the check of its value', async () => {
    const harness = harnessOf([says('{"a":1}')], { extras: knowsSchemas });
    harness.schemas.readValue = () => new Promise(() => {});
    const events = all(harness.run({ schema }));
    await settled();
    await harness.clock.advance(120_000);
    expect(endOf(await events)).toMatchObject({ outcome: 'timeout' });
    await harness.expectTidy();
  });

  it('is not repaired if the program supports schemas itself', async () => {
    const harness = harnessOf([says('Sure!')], { extras: knowsSchemas });
    const events = await all(harness.run({ schema, isStreamed: true }));
    expect(textsOf(events)).toEqual([]);
    const message = 'the answer of the model does not fit the schema: the answer is not JSON';
    expect(endOf(events)).toMatchObject({ outcome: 'cli_error', failure: { reason: 'schema_mismatch', message } });
    expect(harness.processes.map(({ released }) => released)).toEqual([[null]]);
    await harness.expectTidy();
  });

  it('describes the schema in the prompt of other programs, and asks once for a repair', async () => {
    const harness = harnessOf([says('Sure!'), says('{"a":1}')]);
    const events = await all(harness.run({ schema, text: 'Hi', system: 'Be brief.' }));
    expect(textsOf(events)).toEqual(['{"a":1}']);
    expect(doneOf(events).usage).toMatchObject({ inputTokens: 6, outputTokens: 4 });
    const [first, second] = harness.processes.map(({ turns }) => turns[0]);
    expect(first).toMatchObject({ schema: null, system: 'Be brief.', history: [] });
    expect(first?.text).toContain(schema);
    expect(second?.history).toEqual([
      { role: 'user', text: first?.text, images: [] },
      { role: 'assistant', text: 'Sure!' },
    ]);
    expect(harness.processes.map(({ released }) => released)).toEqual([[null], [null]]);
    expect(harness.requestedConversations).toEqual([null, null]);
    await harness.expectTidy();
  });

  it('fails if the repaired answer does not match the schema either', async () => {
    const harness = harnessOf([says('Sure!'), says('Sorry!'), says('{}')]);
    const end = await harness.finish({ schema });
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'schema_mismatch' } });
    expect(harness.processes).toHaveLength(2);
    await harness.expectTidy();
  });

  it('adds only the question and the value to its conversation, not the repair', async () => {
    const harness = harnessOf([says('Sure!'), says('{"a":1}'), says('Bye')]);
    const { conversation } = doneOf(await all(harness.run({ operation: 'chat', schema, text: 'Hi' })));
    expect(conversation?.messageCount).toBe(2);
    await harness.turn(conversation?.id);
    expect(harness.processes[2]?.turns[0]?.history.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'Hi'],
      ['assistant', '{"a":1}'],
    ]);
  });
});

it.each([
  ['is not reused after a repair, because its history has the invalid answer', [says('Sure!'), says('{"a":1}')], 2],
  ['is reused after an answer that fits its schema', [says('{"a":1}')], 1],
])('The process of a conversation %s', async (_, scripts, processes) => {
  const harness = harnessOf(scripts);
  doneOf(await all(harness.run({ operation: 'chat', schema })));
  const [last] = harness.processes.at(-1)?.released ?? [];
  expect([harness.processes.length, last === null]).toEqual([processes, processes === 2]);
});

describe('A job with stop sequences', () => {
  it('ends before the first stop sequence, and its process is not reused', async () => {
    const harness = harnessOf([says('one ST', 'OP two', ' three')]);
    const request = { operation: 'chat', stop: ['STOP', 'three'], isStreamed: true } as const;
    const events = await all(harness.run(request));
    expect(textsOf(events)).toEqual(['one ']);
    expect(doneOf(events)).toMatchObject({ text: null, stopSequence: 'STOP', conversation: { messageCount: 2 } });
    expect(harness.processes[0]?.released).toEqual([null]);
    await harness.expectTidy();
  });

  it('also cuts the final text that the program reports at its end', async () => {
    const harness = harnessOf([async () => ({ ...turnEnd, text: 'one STOP two' })]);
    const request = { operation: 'chat', stop: ['STOP'] } as const;
    expect(doneOf(await all(harness.run(request)))).toMatchObject({ text: 'one ', stopSequence: 'STOP' });
    expect(harness.processes[0]?.released).toEqual([null]);
  });
});

describe('A job whose caller stores the conversation', () => {
  function chainOf(history: readonly Message[], text: string): Partial<JobRequest> {
    const before = history.reduce(chained, chainStart(null, null));
    return { history, text, chain: { before, asked: chained(before, { role: 'user', text }) } };
  }

  const first = chainOf([], 'Hi');
  const second = chainOf(
    [
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: 'Hello' },
    ],
    'And?',
  );

  it('leaves its process for the next request', async () => {
    const harness = jobHarness();
    expect((await all(harness.run(first)))[0]).toMatchObject({ type: 'job-admitted', session: 'replay' });
    const [kept] = harness.processes[0]?.released ?? [];
    expect(kept).toMatchObject({ messageCount: 2, launch: { schema: null } });
    harness.liveConversations = kept ? [kept] : [];
    expect((await all(harness.run(second)))[0]).toMatchObject({ type: 'job-admitted', session: 'live' });
    expect(harness.requestedConversations).toEqual([null, expect.objectContaining({ id: kept?.id, messageCount: 2 })]);
  });

  it('does not use a process that another job already continues', async () => {
    const harness = jobHarness({ maxActive: 2 });
    await all(harness.run(first));
    const [kept] = harness.processes[0]?.released ?? [];
    harness.liveConversations = kept ? [kept] : [];
    const events = await Promise.all([all(harness.run(second)), all(harness.run(second))]);
    expect(events.map(([admitted]) => admitted)).toMatchObject([{ session: 'live' }, { session: 'replay' }]);
    expect(harness.requestedConversations.slice(1).map((state) => state?.id)).toEqual([kept?.id, '']);
  });

  it('does not leave its process for reuse if its answer was cut short', async () => {
    const harness = harnessOf([says('Hello STOP')]);
    await all(harness.run({ ...first, stop: ['STOP'] }));
    expect(harness.processes[0]?.released).toEqual([null]);
  });

  it('reports estimated tokens only if the program reports none', async () => {
    const silent: Script = async (sink) => {
      sink.write(textDelta('Hello'));
      return { ...turnEnd, usage: nothing };
    };
    const harness = harnessOf([silent, says('Hello'), silent]);
    const heard = 'Hi'.length + 'Hello'.length + 'And?'.length;
    expect(doneOf(await all(harness.run(second))).estimate).toEqual({ inputTokens: heard, outputTokens: 5 });
    expect(doneOf(await all(harness.run(second))).estimate).toBeNull();
    // The request does not ask for an estimate.
    expect(doneOf(await all(harness.run({ text: 'Hi' }))).estimate).toBeNull();
  });
});

describe('An input that the program does not support', () => {
  it.each<[string, Partial<JobRequest>]>([
    ['images', { images: [image] }],
    ['effort', { effort: 'high' }],
  ])('is refused immediately: %s', async (path, request) => {
    const harness = jobHarness();
    const message = 'the model CLI of this service takes none';
    expect(() => harness.run(request)).toThrow(
      expect.objectContaining({ code: 'validation_error', details: [{ path, message }] }),
    );
    expect(harness.launches).toEqual([]);
    await harness.expectTidy();
  });

  it('fails the job if the program has not been examined yet', async () => {
    const harness = jobHarness();
    harness.isProgramKnown = false;
    const end = await harness.finish({ images: [image] });
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { message: 'the model CLI takes no images' } });
    expect(harness.processes[0]?.turns).toEqual([]);
    await harness.expectTidy();
  });

  it('is omitted and reported if it is optional', async () => {
    const harness = jobHarness();
    const events = await all(harness.run({ effort: 'high', isEffortNeeded: false }));
    expect(events[0]).toEqual({ type: 'job-admitted', session: null, ignoresEffort: true });
    expect(harness.launches[0]?.effort).toBeNull();
  });

  it('is reported at the end if the program was not known at the admission', async () => {
    const harness = jobHarness({ extras: { fitSampling: () => ({ maxTokens: 9 }) } });
    harness.isProgramKnown = false;
    const events = await all(harness.run({ sampling: { temperature: 0.5, maxTokens: 9 } }));
    expect(events[0]).toEqual({ type: 'job-admitted', session: null, ignoresEffort: false });
    expect(doneOf(events).ignores).toEqual(['temperature']);
    expect(harness.processes[0]?.turns[0]?.sampling).toEqual({ maxTokens: 9 });
  });

  it('is passed on if the program supports it', async () => {
    const harness = jobHarness({ extras: { image: () => ({}), effort: () => ({}) } });
    const events = await all(harness.run({ effort: 'high', images: [image] }));
    expect(events[0]).toMatchObject({ ignoresEffort: false });
    expect(harness.processes[0]?.turns[0]).toMatchObject({ effort: 'high', images: [image] });
  });
});
