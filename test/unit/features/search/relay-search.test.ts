import type { SearchResult } from '../../../../src/features/search/search-result.js';
import type { Capabilities, ToolCall } from '../../../../src/primary/cli/contract/adapter.js';
import type { TurnSink } from '../../../../src/primary/cli/process/open-turn.js';
import { orAborted, withResolvers } from '../../../../src/shared/async.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import {
  all,
  endOf,
  forever,
  type JobHarness,
  type JobOptions,
  jobHarness,
  type Script,
  turnEnd,
} from '../../../support/jobs/job-harness.js';

const page = { title: 'Rain', url: 'https://a.org/rain' };
const found: SearchResult = { text: 'It rains.', links: [page], isError: false };
const answer = 'See [Rain](https://a.org/rain).';
const asked: Partial<JobRequest> = { text: 'Rain?', search: { path: 'tools.0' }, isStreamed: true };
const native: Capabilities = { tools: 'parallel' };

function searchCall(query: unknown, id = 'c1'): ToolCall {
  return { id, name: 'web_search', input: JSON.stringify({ query }) };
}

function calls(sink: TurnSink, text: string, ...made: readonly ToolCall[]) {
  if (text !== '') sink.write(textDelta(text));
  for (const { id, name, input } of made) {
    sink.write({ type: 'call-start', id, name });
    sink.write({ type: 'call-delta', text: input });
  }
  return { ...turnEnd, calls: made };
}

/** Calls in the first turns, and then answers. */
function callsFirst(...rounds: readonly (readonly ToolCall[])[]): Script {
  const left = [...rounds];
  return async (sink) => {
    const round = left.shift();
    if (round !== undefined) return calls(sink, 'Look: ', ...round);
    sink.write(textDelta(answer));
    return turnEnd;
  };
}

/** Returns a harness whose relay searches, and records the queries. */
function searching(options: JobOptions, find: (signal: AbortSignal) => Promise<SearchResult> = async () => found) {
  const harness = jobHarness({ extras: native, ...options });
  const queries: string[] = [];
  harness.searchesPerDay = 100;
  harness.searchServer = {
    domainFault: ({ allowedDomains }) => (allowedDomains ? 'cannot limit the search to domains' : null),
    find: (query, _domains, _client, signal) => {
      queries.push(query);
      return find(signal);
    },
  };
  return Object.assign(harness, { queries });
}

function turnsOf({ processes }: JobHarness) {
  return processes.map(({ turns }) => turns.map(({ text, results, history }) => ({ text, results, history })));
}

describe('A search by the relay', () => {
  it('is a tool call whose result goes to the waiting process, at its place in the stream', async () => {
    const harness = searching({ script: callsFirst([searchCall(' rain ')]) });
    const events = await all(harness.run(asked));
    const pieces = events.filter(({ type }) => ['text-delta', 'search', 'call-start'].includes(type));
    const search = { query: 'rain', results: [page], count: 1 };
    expect(pieces).toMatchObject([{ text: 'Look: ' }, { type: 'search', ...search }, { text: `\n\n${answer}` }]);
    expect(endOf(events)).toMatchObject({
      ...{ outcome: 'ok', text: null, usage: { inputTokens: 6, outputTokens: 4, costUsd: null } },
      searches: [{ ...search, at: 6, thoughts: 0 }],
      citations: [{ ...page, start: 12, end: 38 }],
    });
    expect(endOf(events)).not.toHaveProperty('calls');
    const results = [{ id: 'c1', text: 'It rains.', isError: false }];
    expect(turnsOf(harness)).toMatchObject([[{ text: 'Rain?' }, { text: '', results, history: [] }]]);
    const [turn] = harness.processes[0]?.turns ?? [];
    expect(turn).toMatchObject({ offer: { tools: [{ name: 'web_search' }], choice: 'auto' } });
    expect(turn).not.toHaveProperty('search');
    expect(harness.launches[0]).not.toHaveProperty('hasSearch');
    expect([harness.queries, harness.charges]).toMatchObject([['rain'], [{ searches: 1 }]]);
    await harness.expectTidy();
  });

  it('replays the conversation if the process does not wait', async () => {
    const script = callsFirst([searchCall('rain')]);
    const harness = searching({ script }, async () => {
      Object.assign(harness.processes[0]?.process ?? {}, { isReusable: false });
      return found;
    });
    const events = all(harness.run(asked));
    expect(endOf(await events)).toMatchObject({ outcome: 'ok' });
    const results = [{ id: 'c1', text: 'It rains.', isError: false }];
    const history = [
      { role: 'user', text: 'Rain?' },
      { role: 'assistant', text: 'Look: ', calls: [searchCall('rain')] },
    ];
    expect(turnsOf(harness)).toMatchObject([[{ text: 'Rain?' }], [{ text: '', results, history }]]);
    await harness.expectTidy();
  });

  it('is written as text by a program without tools, in a new process for each turn', async () => {
    const call = { kind: 'call', name: 'web_search', arguments: { query: 'rain' } };
    const texts = [call, { kind: 'text', text: answer }].map((value) => JSON.stringify(value));
    const script: Script = async (sink) => {
      sink.write(textDelta(texts.shift() ?? ''));
      return turnEnd;
    };
    const harness = searching({ script, extras: {} });
    const events = await all(harness.run(asked));
    const pieces = events.filter(({ type }) => type === 'text-delta' || type === 'search');
    expect(pieces).toMatchObject([{ type: 'search', query: 'rain' }, { text: answer }]);
    expect(harness.processes.map(({ turns }) => turns.length)).toEqual([1, 1]);
    const last = harness.processes[1]?.turns[0];
    expect(last?.text).toContain('Result of web_search');
    expect(last?.text).toContain('It rains.');
    const written = '{"kind": "call", "name": "web_search", "arguments": {"query":"rain"}}';
    expect(last?.history).toMatchObject([{ text: 'Rain?' }, { role: 'assistant', text: written }]);
    await harness.expectTidy();
  });

  it('is refused beyond the limits of the request and for odd arguments, without a request', async () => {
    const odd = ['', 7, 'x'.repeat(1001)].map((query, at) => searchCall(query, `odd${at}`));
    const other = { id: 'o', name: 'rm', input: '{}' };
    const many = ['a', 'b', 'c'].map((query) => searchCall(query, query));
    const harness = searching({ script: callsFirst([...odd, other, ...many]) });
    const events = await all(harness.run({ ...asked, search: { path: 'tools.0', maxUses: 2 } }));
    const searches = events.flatMap((event) =>
      event.type === 'search' ? [[event.query, event.error, event.count]] : [],
    );
    const invalid = ['', 'invalid_tool_input', 0];
    expect(searches).toEqual([
      invalid,
      invalid,
      invalid,
      ['a', undefined, 1],
      ['b', undefined, 1],
      ['c', 'max_uses_exceeded', 0],
    ]);
    const results = harness.processes[0]?.turns[1]?.results ?? [];
    expect(results.map(({ isError }) => isError)).toEqual([true, true, true, true, false, false, true]);
    expect(results.at(-1)?.text).toBe('No further search is allowed for this answer. Answer with what you know.');
    expect(harness.queries).toEqual(['a', 'b']);
    expect(harness.charges).toMatchObject([{ searches: 2 }]);
  });

  it('ends the job if the model never stops to call', async () => {
    const harness = searching({ script: async (sink) => calls(sink, '', searchCall('rain')) });
    const end = await harness.finish({ ...asked, search: { path: 'tools.0', maxUses: 1 } });
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'other' } });
    expect(harness.queries).toEqual(['rain']);
    await harness.expectTidy();
  });

  it('ends the job if the texts of all turns are too long for an answer', async () => {
    const harness = searching({ script: async (sink) => calls(sink, 'x'.repeat(4000), searchCall('rain')) });
    expect(await harness.finish(asked)).toMatchObject({ failure: { reason: 'output_too_large' } });
    expect(harness.queries).toEqual(['rain', 'rain']);
    await harness.expectTidy();
  });

  it('that fails is an error for the model and the client, and the job goes on', async () => {
    const failed = { text: 'unavailable', links: [], isError: true };
    const harness = searching({ script: callsFirst([searchCall('rain')]) }, async () => failed);
    const events = await all(harness.run(asked));
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'search', results: [], error: 'unavailable', count: 1 }),
    );
    expect(endOf(events)).toMatchObject({ outcome: 'ok' });
    expect(harness.processes[0]?.turns[1]?.results).toEqual([{ id: 'c1', text: 'unavailable', isError: true }]);
  });

  it('ends with its job', async () => {
    const { promise: isSearching, resolve } = withResolvers();
    const harness = searching({ script: callsFirst([searchCall('rain')]) }, (signal) => {
      resolve();
      return orAborted(forever, signal);
    });
    const job = harness.start(asked);
    await isSearching;
    job.leave();
    expect(await job.end()).toMatchObject({ outcome: 'cancelled' });
    await harness.expectTidy();
  });

  it('ends at a stop sequence before the call, and at a message that was cut short', async () => {
    const cut: Script = async (sink) => ({ ...calls(sink, 'Look: ', searchCall('rain')), isCutShort: true });
    const harness = searching({ script: cut });
    expect(await harness.finish(asked)).toMatchObject({ outcome: 'ok', isCutShort: true });
    const stopped = searching({ script: callsFirst([searchCall('rain')]) });
    expect(await stopped.finish({ ...asked, stop: ['ok:'] })).toMatchObject({ outcome: 'ok', stopSequence: 'ok:' });
    expect(harness.queries).toEqual([]);
  });

  it('corrects the whole text if the program corrects the text of one turn', async () => {
    const script: Script = async (sink) => {
      if (harness.queries.length === 0) return { ...calls(sink, '', searchCall('rain')), text: 'Look: ' };
      sink.write(textDelta(answer));
      return turnEnd;
    };
    const harness = searching({ script });
    expect(await harness.finish({ ...asked, isStreamed: false })).toMatchObject({
      outcome: 'ok',
      text: `Look: \n\n${answer}`,
    });
  });

  it('is refused with its reason before the job begins', () => {
    const harness = searching({});
    const limited = { search: { path: 'tools.0', allowedDomains: ['a.org'] } };
    expect(() => harness.run(limited)).toThrow('tools.0: cannot limit the search to domains');
    harness.extras = { tools: 'parallel', ownTools: new Set(['WebSearch']) };
    expect(() => harness.run(asked)).toThrow('cannot be used with a model CLI that has its own tools');
    harness.searchesPerDay = null;
    expect(() => harness.run(asked)).toThrow('needs an API key with the option search=on');
  });
});
