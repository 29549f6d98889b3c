import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import type { ConversationState } from '../../../../src/primary/cli/process/cli-process.js';
import { JobChain, RecentChains } from '../../../../src/primary/jobs/job-chain.js';
import type { ClientText } from '../../../../src/shared/client.js';
import type { Image, JobRequest, Message, ToolCall, ToolResult } from '../../../../src/shared/job.js';
import { chained, chainStart } from '../../../../src/shared/text/chain.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

interface Situation {
  readonly client?: ClientText;
  readonly model?: string | null;
  readonly system?: string | null;
  readonly schema?: string | null;
}

/** Builds the request of a client that resends the conversation, with the chain that a worker computes. */
function requestWith(history: readonly Message[], text: string, situation: Situation): JobRequest {
  const { client = 'key ada', system = null, schema = null } = situation;
  const before = history.reduce(chained, chainStart(system, schema));
  const chain = { before, asked: chained(before, { role: 'user', text }) };
  return jobRequest({ client, system, schema, history, text, chain });
}

function routed(request: JobRequest, publicModel: string | null = null) {
  return { request, route: { publicModel }, launch: plainLaunch(null), takesResults: true };
}

function fresh(): RecentChains {
  return new RecentChains(new FakeClock());
}

function chainOf(history: readonly Message[], situation: Situation = {}, kept: readonly ConversationState[] = []) {
  const isKept = (state: ConversationState) =>
    kept.some(({ id, messageCount }) => id === state.id && messageCount === state.messageCount);
  const request = requestWith(history, 'And then?', situation);
  const chain = JobChain.of(routed(request, situation.model), fresh(), isKept);
  if (chain === null) throw new Error('the request has a chain');
  return chain;
}

const hello: Message = { role: 'user', text: 'Hello' };
const hi: Message = { role: 'assistant', text: 'Hi' };

/** Returns the state under which a process is stored after the first turn. */
function afterFirst(answer: string, situation: Situation = {}): ConversationState {
  const request = requestWith([], hello.text, situation);
  const chain = JobChain.of(routed(request, situation.model), fresh(), () => false);
  if (chain === null) throw new Error('the request has a chain');
  return chain.after(answer);
}

describe('The chain of a job', () => {
  it('is null for a request without one', () => {
    expect(JobChain.of(routed(jobRequest()), fresh(), () => true)).toBeNull();
  });

  it('continues the process with exactly the same history', () => {
    const kept = afterFirst('Hi');
    const chain = chainOf([hello, hi], {}, [kept]);
    expect(chain.isLive).toBe(true);
    expect(chain.before).toMatchObject({ id: kept.id, messageCount: 2 });
    expect(kept).toMatchObject({ messageCount: 2, guess: { kind: 'question', client: 'key ada' } });
    const beginnings = [{ id: [hello, hi].reduce(chained, chainStart(null, null)), messageCount: 2 }];
    expect(chain.after('Well')).toEqual({ id: expect.any(String), messageCount: 4, client: 'key ada', beginnings });
  });

  it('has the beginnings that the process of another conversation may have, unless it continues its own', () => {
    const recent = fresh();
    const start = chainStart(null, null);
    const whole = { id: [hello, hi].reduce(chained, start), messageCount: 2 };
    const open = (history: readonly Message[], more: Partial<JobRequest> = {}) => {
      const { chain, ...request } = requestWith(history, 'And then?', {});
      const beginnings = history.length > 2 ? [whole] : [];
      return JobChain.of(
        routed({ ...request, chain: chain && { ...chain, beginnings }, ...more }),
        recent,
        () => false,
      );
    };
    // this service has not answered the history, so that only processes which may be useless are taken
    expect(open([hello, hi])?.before).toMatchObject({ id: '', beginnings: [whole], isUnknown: true });
    JobChain.of(routed(requestWith([], hello.text, {})), recent, () => false)?.after('Hi');
    const known = open([hello, hi])?.before;
    expect([known?.beginnings, known?.isUnknown]).toEqual([[whole], undefined]);
    const further = [hello, hi, { role: 'user', text: 'More' }, { role: 'assistant', text: 'No' }] as const;
    const four = { id: further.reduce(chained, start), messageCount: 4 };
    expect(open(further)?.before).toMatchObject({ beginnings: [four, whole], isUnknown: true });
    expect(open(further, { results: [] })?.before?.beginnings).toBeUndefined();
    expect(open([])?.before).toBeNull();
  });

  it('does not take a process back after another version of its conversation has got it', () => {
    const recent = fresh();
    const further = [hello, hi, { role: 'user', text: 'More' }, { role: 'assistant', text: 'No' }] as const;
    const chain = (history: readonly Message[], text: string) => {
      const request = requestWith(history, text, {});
      return JobChain.of(routed(request), recent, () => false);
    };
    chain([hello, hi], 'More')?.after('No');
    const { beginnings } = chain(further, 'And then?')?.before ?? {};
    expect(beginnings?.map(({ messageCount }) => messageCount)).toEqual([4]);
  });

  it('continues live after each of its answers', () => {
    const said: Message[] = [hello, hi];
    let kept = afterFirst('Hi');
    for (let turn = 2; turn <= 20; turn++) {
      const chain = chainOf(said, {}, [kept]);
      expect(chain.isLive).toBe(true);
      kept = chain.after(`answer ${turn}`);
      said.push({ role: 'user', text: 'And then?' }, { role: 'assistant', text: `answer ${turn}` });
    }
  });

  it.each<[string, readonly Message[], Situation]>([
    ['another client', [hello, hi], { client: 'key bob' }],
    ['another model', [hello, hi], { model: 'echo' }],
    ['another system text', [hello, hi], { system: 'Be brief.' }],
    ['another schema', [hello, hi], { schema: '{"type":"object"}' }],
    ['a changed answer', [hello, { ...hi, text: 'Hi!' }], {}],
    ['a changed question', [{ ...hello, text: 'Hello!' }, hi], {}],
    ['changed roles', [{ ...hello, role: 'assistant' }, hi], {}],
    ['an image', [{ ...hello, images: [{ mediaType: 'image/png', data: 'AAAA', at: 0 }] }, hi], {}],
    ['one text more', [hello, hi, hello, hi], {}],
  ])('is replayed with %s, and no process is reused', (_, history, situation) => {
    const chain = chainOf(history, situation, [afterFirst('Hi')]);
    expect(chain.isLive).toBe(false);
    expect(chain.before).toMatchObject({ id: '', messageCount: history.length });
  });

  it('looks for no process if this is the first message', () => {
    const chain = JobChain.of(routed(requestWith([], 'Hello', {})), fresh(), () => true);
    expect([chain?.isLive, chain?.before]).toEqual([false, null]);
  });

  it('is certain for a conversation that was answered before, even if its process has ended', () => {
    const recent = fresh();
    const open = (history: readonly Message[], text: string) =>
      JobChain.of(routed(requestWith(history, text, {})), recent, () => false);
    const first = open([], hello.text);
    expect(first?.after(hi.text).guess).toMatchObject({ kind: 'question' });
    expect(open([hello, hi], 'And then?')?.after('Well').guess).toBeUndefined();
    const unknown: readonly Message[] = [hello, { ...hi, text: 'Howdy' }];
    expect(open(unknown, 'And then?')?.after('Well').guess).toBeDefined();
  });

  it('is marked as a side request if the request overlaps another one', () => {
    const recent = fresh();
    const open = (text: string) => JobChain.of(routed(requestWith([], text, {})), recent, () => false);
    const [title, question] = [open('A title?'), open('Hello')];
    expect(title?.after('Greetings').guess).toEqual({ kind: 'side', client: 'key ada' });
    title?.closeChain();
    expect(question?.after('Hi').guess).toEqual({ kind: 'question', client: 'key ada' });
  });
});

describe('The chain of a job with calls', () => {
  const calls: readonly ToolCall[] = [
    { id: 'b', name: 'weather', input: '{"city":"Bonn","days":2}' },
    { id: 'a', name: 'cook', input: '{}' },
  ];
  const results: readonly ToolResult[] = [
    { id: 'b', text: 'windy', isError: false },
    { id: 'a', text: 'no fire', isError: true },
  ];
  const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };

  /** Returns the state under which the process is stored that made these calls. */
  function afterCalls(isWaiting: boolean, text = 'I see.', made = calls): ConversationState {
    const chain = JobChain.of(routed(requestWith([], hello.text, {})), fresh(), () => false);
    if (chain === null) throw new Error('the request has a chain');
    return chain.after(text, made, isWaiting);
  }

  /** Returns the chain of a job that sends results, and the state by which it looks for a process. */
  function answering(more: Partial<JobRequest> = {}, said: Message = { role: 'assistant', text: 'I see.', calls }) {
    const history = [hello, said];
    const request = { ...requestWith(history, '', {}), text: '', results, ...more };
    const asked: ConversationState[] = [];
    const chain = JobChain.of(routed(request), fresh(), (state) => asked.push(state) > 0);
    return { chain, place: asked[0] };
  }

  it('stores the ids of the open calls in a fixed order only if the process waits for their results', () => {
    expect(afterCalls(true)).toMatchObject({ messageCount: 2, openCalls: ['a', 'b'] });
    expect(afterCalls(false)).not.toHaveProperty('openCalls');
    expect(afterCalls(false).id).toBe(afterCalls(true).id);
  });

  it('continues the process that waits for exactly these results, in any order', () => {
    const kept = afterCalls(true);
    for (const sent of [results, results.toReversed()]) {
      const { chain, place } = answering({ results: sent });
      expect(place).toMatchObject({ id: kept.id, messageCount: 2, openCalls: ['a', 'b'] });
      expect([chain?.isLive, chain?.before]).toEqual([true, place]);
    }
  });

  it('finds its process even if the client formats the same inputs differently', () => {
    const [first, ...others] = calls as [ToolCall, ToolCall];
    const written = [{ ...first, input: '{ "days": 2, "city": "Bonn" }' }, ...others];
    const said: Message = { role: 'assistant', text: ' I see. ', calls: written };
    expect(answering({}, said).place?.id).toBe(afterCalls(true).id);
  });

  it.each<[string, readonly ToolCall[] | undefined]>([
    ['no calls', undefined],
    ['fewer calls', calls.slice(1)],
    ['other ids', calls.map((call) => ({ ...call, id: `${call.id}1` }))],
    ['another input', calls.map((call) => ({ ...call, input: '{"city":"Rome"}' }))],
    ['calls in another order', calls.toReversed()],
  ])('finds no process if its history has %s', (_, made) => {
    const said: Message = { role: 'assistant', text: 'I see.', ...(made && { calls: made }) };
    expect(answering({}, said).place?.id).not.toBe(afterCalls(true).id);
  });

  it.each<[string, Partial<JobRequest>]>([
    ['a text stands beside the results', { text: 'So?' }],
    ['an image stands beside the results', { images: [image] }],
    ['a result is longer than a process takes', { results: [{ ...results[0], text: 'x'.repeat(500_001) }] as never }],
  ])('does not continue a waiting process if %s', (_, more) => {
    expect(answering(more).place).toMatchObject({ messageCount: 2, openCalls: [] });
  });

  it('does not continue a waiting process if the program would receive the results as text', () => {
    const request = {
      ...requestWith([hello, { role: 'assistant', text: 'I see.', calls }], '', {}),
      text: '',
      results,
    };
    const asked: ConversationState[] = [];
    JobChain.of({ ...routed(request), takesResults: false }, fresh(), (state) => asked.push(state) > 0);
    expect(asked[0]).toMatchObject({ id: afterCalls(true).id, openCalls: [] });
  });

  it('continues with a result of the largest size that a process accepts', () => {
    const long = results.map((result) => ({ ...result, text: 'x'.repeat(500_000) }));
    expect(answering({ results: long }).place?.openCalls).toEqual(['a', 'b']);
  });

  it('looks for no open calls if the request has no results', () => {
    const { place } = answering({ results: undefined, text: 'So?' } as Partial<JobRequest>, hi);
    expect(place).not.toHaveProperty('openCalls');
  });

  it('is replayed if no process waits', () => {
    const request = { ...requestWith([hello, { ...hi, calls }], '', {}), text: '', results };
    const chain = JobChain.of(routed(request), fresh(), () => false);
    const place = { id: expect.stringMatching(/^[0-9a-f]{64}$/), messageCount: 2, openCalls: ['a', 'b'] };
    expect([chain?.isLive, chain?.before]).toMatchObject([false, place]); // a process that waits there is ended
  });
});
