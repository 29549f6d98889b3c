import type { SearchMade } from '../../../../src/shared/job.js';
import { all, endOf, jobHarness, type Script, turnEnd } from '../../../support/jobs/job-harness.js';

const made: SearchMade = {
  ...{ type: 'search', id: 's1', query: 'rain', count: 1 },
  results: [{ title: 'Rain', url: 'https://a.org/rain' }],
};
const script: Script = async (sink) => {
  sink.write('Look: ');
  sink.search?.(made);
  sink.write('[Rain](https://a.org/rain)');
  return turnEnd;
};
const asked = { search: { path: 'tools.0', maxUses: 5 }, isStreamed: true };

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
    const events = await all(harness.events(id));
    const texts = ['Look: ', '[Rain](https://a.org/rain)'].map((text) => ({ type: 'text-delta', text }));
    const pieces = events.filter(({ type }) => type === 'text-delta' || type === 'search');
    expect(pieces).toEqual([texts[0], made, texts[1]]);
    expect(harness.backgroundEnds).toMatchObject([{ id, end: { outcome: 'ok', searches: [{ id: 's1', at: 6 }] } }]);
    expect(harness.charges).toMatchObject([{ searches: 1 }]);
    await harness.expectTidy();
  });

  it('are refused for a program that cannot search, and for a client that may not', () => {
    const harness = jobHarness({});
    expect(() => harness.run(asked)).toThrow('needs an API key with the option search=on');
    harness.searchesPerDay = 3;
    expect(() => harness.run(asked)).toThrow('the model CLI of this service cannot search the web');
  });
});
