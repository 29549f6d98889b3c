import type { UsageDelta } from '../../../../../src/features/stores/contract/usage.js';
import { byMonth, foldDays, UsageRows } from '../../../../../src/features/stores/contract/usage-rows.js';
import { noCharge } from '../../../../../src/primary/jobs/bill.js';
import type { ClientText } from '../../../../../src/shared/client.js';

const figures = { jobs: { ok: 1 } as UsageDelta['jobs'], refused: 0, ...noCharge, modelMs: 0 };

function rowOf(client: ClientText, model = 'opus', day = '2026-01-31'): UsageDelta {
  return { ...figures, day, client, model, account: '' };
}

function countIn(rows: UsageRows, more: UsageDelta): void {
  rows.addUsage(rows.named(more));
}

describe('The rows of a day', () => {
  it('are at most 20 for the models of a client, and one for all its other models', () => {
    const rows = new UsageRows();
    for (let n = 0; n < 10_000; n++) countIn(rows, rowOf('key ada', `model-${n}`));
    countIn(rows, rowOf('key ada', 'model-7'));
    const stored = [...rows.of('key ada')];
    expect([stored.length, rows.size]).toEqual([21, 21]);
    expect(stored.find(({ model }) => model === 'other')?.jobs.ok).toBe(9980);
    expect(stored.find(({ model }) => model === 'model-7')?.jobs.ok).toBe(2);
  });

  it('are limited for all sub-clients together, and leave room for other clients and their models', () => {
    const rows = new UsageRows();
    for (let n = 0; n < 5000; n++) countIn(rows, rowOf(`key ada/${n % 1000}`, `model-${n % 7}`));
    expect(rows.size).toBeLessThanOrEqual(500 + 500 + 501);
    for (const model of ['opus', 'haiku']) countIn(rows, rowOf('key bob', model));
    expect([...rows.of('key bob')].map(({ model }) => model)).toEqual(['opus', 'haiku']);
  });

  it('count sub-clients beyond the limit for their key, as long as there is room for keys', () => {
    const rows = new UsageRows();
    const nameFor = (client: ClientText) => {
      countIn(rows, rowOf(client));
      return rows.named(rowOf(client)).client;
    };
    for (let n = 0; n < 500; n++) expect(nameFor(`key ada/${n}`)).toBe(`key ada/${n}`);
    expect([nameFor('key ada/new'), nameFor('key eve/new'), nameFor('key ada/7')]).toEqual([
      ...['key ada', 'key eve', 'key ada/7'],
    ]);
    for (let n = 0; n < 1000; n++) countIn(rows, rowOf(`address ${n}`));
    expect([nameFor('key ada/newer'), nameFor('key bob/new'), nameFor('address new'), nameFor('user new')]).toEqual([
      ...['key ada', 'key bob', 'other other', 'other other'],
    ]);
  });

  it('have a name for each key and person, whose budget would otherwise begin anew, however many there are', () => {
    const rows = new UsageRows();
    const nameFor = (client: ClientText) => {
      countIn(rows, rowOf(client));
      return rows.named(rowOf(client)).client;
    };
    for (let n = 0; n < 1500; n++)
      for (const client of [`address ${n}`, `key app/${n}`, `sso p${n}`] as const) nameFor(client);
    const names = (['key new', 'made new~1', 'sso new', 'sso p7/laptop~1', 'made new~1/user'] as const).map(nameFor);
    expect(names).toEqual(['key new', 'made new~1', 'sso new', 'sso p7/laptop~1', 'made new~1']);
  });

  it('count the keys of one person beyond the limit for the person', () => {
    const rows = new UsageRows();
    for (let n = 0; n < 150; n++) countIn(rows, rowOf(`sso ada/k~${n}`));
    countIn(rows, rowOf('sso eve/k~1'));
    expect([[...rows.of('sso ada')].map(({ jobs }) => jobs.ok), rows.size]).toEqual([[50], 102]);
    rows.removeClient('sso ada/k~1');
    expect(rows.named(rowOf('sso ada/new~1')).client).toBe('sso ada/new~1');
  });

  it('are removed with their client', () => {
    const rows = new UsageRows();
    for (const client of ['key ada', 'key bob'] as const)
      for (const model of ['opus', 'haiku']) rows.addUsage(rowOf(client, model));
    expect([rows.removeClient('key ada'), rows.removeClient('key ada'), rows.size]).toEqual([2, 0, 2]);
  });
});

describe('Days that are added to their month', () => {
  it('have the names of the month, within the limits of the rows that it has', () => {
    const stored = Array.from({ length: 20 }, (_, n) => rowOf('key ada', `model-${n}`, '2026-01'));
    const days = ['model-3', 'new', 'newer'].map((model) => rowOf('key ada', model));
    expect(foldDays('2026-01', stored, days).map(({ day, model, jobs }) => [day, model, jobs.ok])).toEqual([
      ['2026-01', 'model-3', 1],
      ['2026-01', 'other', 2],
    ]);
  });

  it('are grouped by month', () => {
    const days = ['2026-01-31', '2026-02-01', '2026-01-01'].map((day) => rowOf('key ada', 'opus', day));
    expect([...byMonth(days)].map(([month, rows]) => [month, rows.length])).toEqual([
      ['2026-01', 2],
      ['2026-02', 1],
    ]);
  });
});
