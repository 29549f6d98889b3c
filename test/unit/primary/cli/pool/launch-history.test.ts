import type { LaunchOptions } from '../../../../../src/primary/cli/contract/adapter.js';
import { LaunchHistory } from '../../../../../src/primary/cli/pool/standby-policy.js';
import { usualLaunch, withSystem } from '../../../../support/agents/pool-house.js';

class Book {
  readonly history = new LaunchHistory(usualLaunch);
  file = 'v1';
  nowMs = 0;
  readonly keyOf = ({ model, system }: LaunchOptions) => [this.file, model, system].join(' ');

  use(launch: LaunchOptions, times = 1): void {
    for (let time = 0; time < times; time++) this.history.recordUse(this.keyOf(launch), launch, this.nowMs);
  }

  refresh(): void {
    this.history.refresh(this.keyOf, this.nowMs);
  }

  record(launch: LaunchOptions) {
    return this.history.records.find(({ key }) => key === this.keyOf(launch));
  }

  get systems(): (string | null)[] {
    return this.history.records.map(({ launch }) => launch.system);
  }
}

const brief = withSystem('Be brief.');

describe('The launch history', () => {
  it('is empty before the first refresh, and contains the default launch afterwards', () => {
    const book = new Book();
    expect(book.systems).toEqual([]);
    book.refresh();
    expect(book.systems).toEqual([null]);
    const [record] = book.history.records;
    expect(record).toMatchObject({ uses: 0, failures: 0, notBeforeMs: 0 });
    expect(record !== undefined && book.history.isDefault(record)).toBe(true);
  });

  it('records how often and when each launch was used, and delays an early start behind the job', () => {
    const book = new Book();
    book.refresh();
    book.nowMs = 1000;
    book.use(brief, 2);
    expect(book.record(brief)).toMatchObject({ uses: 2, usedMs: 1000, notBeforeMs: 1150 });
    expect(book.record(usualLaunch)).toMatchObject({ uses: 0, notBeforeMs: 0 });
    expect(book.history.records.map((record) => book.history.isDefault(record))).toEqual([true, false]);
  });

  it('contains the four launches used last, always including the default one', () => {
    const book = new Book();
    book.refresh();
    for (const system of ['1', '2', '3', '4']) book.use(withSystem(system));
    expect(book.systems).toEqual([null, '2', '3', '4']);
    book.use(withSystem('2'));
    book.use(withSystem('5'));
    expect(book.systems).toEqual([null, '4', '2', '5']);
  });

  it('is limited, however many launches there are, with or without a refresh', () => {
    const book = new Book();
    for (let count = 0; count < 1000; count++) book.use(withSystem(String(count % 500)));
    expect(book.history.records).toHaveLength(4);
    book.refresh();
    expect(book.systems).toContain(null);
    expect(book.history.records).toHaveLength(4);
  });

  it('is cleared if the program file has changed, because its launches then have other keys', () => {
    const book = new Book();
    book.refresh();
    book.use(brief, 2);
    book.history.recordFailure(book.keyOf(usualLaunch), 0);
    book.file = 'v2';
    book.refresh();
    expect(book.history.records).toEqual([expect.objectContaining({ key: 'v2  ', launch: usualLaunch, failures: 0 })]);
    book.refresh();
    expect(book.systems).toEqual([null]);
  });
});

describe('A launch that fails', () => {
  function notBefore(book: Book): number | undefined {
    return book.record(usualLaunch)?.notBeforeMs;
  }

  it('is retried after a pause that doubles each time, up to a minute', () => {
    const book = new Book();
    book.refresh();
    const pauses: (number | undefined)[] = [];
    for (let failure = 0; failure < 9; failure++) {
      book.history.recordFailure(book.keyOf(usualLaunch), 0);
      pauses.push(notBefore(book));
    }
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it('is reset when one of its processes was used', () => {
    const book = new Book();
    book.refresh();
    for (let failure = 0; failure < 5; failure++) book.history.recordFailure(book.keyOf(usualLaunch), 0);
    book.history.recordSuccess(book.keyOf(usualLaunch));
    book.history.recordFailure(book.keyOf(usualLaunch), 100_000);
    expect(notBefore(book)).toBe(101_000);
  });

  it('is not retried earlier because a job uses it', () => {
    const book = new Book();
    book.refresh();
    for (let failure = 0; failure < 3; failure++) book.history.recordFailure(book.keyOf(usualLaunch), 0);
    book.use(usualLaunch);
    expect(notBefore(book)).toBe(4000);
  });

  it('has no effect if it is no longer in the history', () => {
    const book = new Book();
    book.refresh();
    book.history.recordFailure('unknown', 0);
    book.history.recordSuccess('unknown');
    expect(book.systems).toEqual([null]);
  });
});
