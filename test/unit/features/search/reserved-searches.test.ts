import type { SearchMade } from '../../../../src/shared/job.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import {
  all,
  answers,
  barrier,
  endOf,
  type JobHarness,
  jobHarness,
  type Script,
  throws,
  turnEnd,
} from '../../../support/jobs/job-harness.js';

const made: SearchMade = {
  ...{ type: 'search', id: 's1', query: 'rain', count: 1 },
  results: [{ title: 'Rain', url: 'https://a.org/rain' }],
};
const script: Script = async (sink) => {
  sink.write(textDelta('Look: '));
  sink.write(made);
  sink.write(textDelta('[Rain](https://a.org/rain)'));
  return turnEnd;
};
const search = { path: 'tools.0', maxUses: 5 };
const asked = { search, isStreamed: true, client: 'key ada' as const };

describe('The web searches of a job', () => {
  it('are limited by the day, and are in the stream and the end with their places and links', async () => {
    const harness = jobHarness({ extras: { search: true }, script });
    harness.searchesPerDay = 3;
    const events = await all(harness.run(asked));
    expect(events).toContainEqual(made);
    const { type: _, ...search } = made;
    expect(endOf(events)).toMatchObject({
      searches: [{ ...search, at: 6, thoughts: 0 }],
      citations: [{ url: 'https://a.org/rain', title: 'Rain', start: 6, end: 32 }],
    });
    await all(harness.run(asked));
    expect(harness.charges).toMatchObject([{ searches: 1 }, { searches: 1 }]); // in the usage
    const turns = harness.processes.flatMap((process) => process.turns);
    expect(turns.map(({ search: limits, hasSearch }) => [limits?.maxUses, hasSearch])).toEqual([
      [3, true],
      [2, true],
    ]);
    await harness.expectTidy();
  });

  it('are in the stream of a background job at their place, and are counted', async () => {
    const harness = jobHarness({ extras: { search: true }, script });
    harness.searchesPerDay = 3;
    const id = await harness.accept(asked);
    const events = await all(harness.events(id, 'key ada'));
    const texts = ['Look: ', '[Rain](https://a.org/rain)'].map((text) => ({ type: 'text-delta', text }));
    const pieces = events.filter(({ type }) => type === 'text-delta' || type === 'search');
    expect(pieces).toEqual([texts[0], made, texts[1]]);
    expect(harness.backgroundEnds).toMatchObject([{ id, end: { outcome: 'ok', searches: [{ id: 's1', at: 6 }] } }]);
    expect(harness.charges).toMatchObject([{ searches: 1 }]);
    await harness.expectTidy();
  });

  const runs = async (harness: JobHarness) => harness.run(asked);
  const waits = async (harness: JobHarness) => harness.events(await harness.accept(asked), asked.client);

  it.each([
    ['the job of a caller', runs, async () => turnEnd],
    ['a failed job', runs, throws(new Error('broken'))],
    ['a background job', waits, async () => turnEnd],
    ['a failed background job', waits, throws(new Error('broken'))],
  ] as const)('count exactly once at every moment, for %s', async (_, start, end) => {
    let harness: JobHarness;
    const left: number[] = [];
    /** Notes the searches that are left, now and after each of the next steps of the event loop. */
    const watch = async () => {
      for (let step = 0; step < 500; step++) {
        left.push(harness.searches.reserve({ path: '' }, 'key ada'));
        harness.searches.settle('key ada', left.at(-1) ?? 0);
        await Promise.resolve();
      }
    };
    harness = jobHarness({
      extras: { search: true },
      script: async (sink, signal) => {
        sink.write({ ...made, count: 5 });
        void watch();
        return end(sink, signal);
      },
    });
    harness.searchesPerDay = 7;
    await all(await start(harness));
    await watch();
    expect(harness.charges).toMatchObject([{ searches: 5 }]);
    expect([left.length, ...new Set(left)]).toEqual([1000, 2]);
    await harness.expectTidy();
  });

  it('are released if the job makes none, and still count for a job that runs over midnight', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({
      extras: { search: true },
      script: [answers, () => wait().then(() => turnEnd)],
    });
    harness.searchesPerDay = 8;
    await all(harness.run(asked));
    const events = all(harness.run(asked));
    const isRunning = () => harness.processes.length === 2;
    while (!isRunning()) await harness.clock.advance(1);
    await harness.clock.advance(86_400_000);
    expect(harness.searches.reserve({ path: '' }, 'key ada')).toBe(3);
    harness.searches.settle('key ada', 3);
    open();
    await events;
    expect(harness.searches.reserve({ path: '' }, 'key ada')).toBe(8);
    await harness.expectTidy();
  });

  it('are refused for a program that cannot search, and for a client that may not', () => {
    const harness = jobHarness({});
    expect(() => harness.run(asked)).toThrow('needs an API key with the option search=on');
    harness.searchesPerDay = 3;
    expect(() => harness.run(asked)).toThrow('the model CLI of this service cannot search the web');
  });
});
