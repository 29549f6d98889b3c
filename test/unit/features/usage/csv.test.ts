import { usageCsv } from '../../../../src/features/usage/csv.js';
import type { UsageRow } from '../../../../src/features/usage/report-form.js';

const figures = {
  jobs: { ok: 5, cancelled: 1, timeout: 2 },
  refused: 4,
  tokens: { input: 30, cached_input: 20, cache_write: 5, output: 7 },
  web_searches: 6,
  cost_usd: 0.0000001,
  model_seconds: 1.5,
} as UsageRow;

describe('Usage as CSV', () => {
  it('has the columns of its groups, and every figure', () => {
    const row = { ...figures, month: '2026-01', client: 'ada', kind: 'key', model: 'opus' } as const;
    expect(usageCsv([row, { ...row, model: null, cost_usd: null }], ['month', 'client', 'model'])).toBe(
      [
        'month,client,kind,model,jobs,failed,cancelled,refused,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,web_searches,cost_usd,model_seconds',
        '2026-01,ada,key,opus,8,2,1,4,30,20,5,7,6,0.000000,1.5',
        '2026-01,ada,key,(none),8,2,1,4,30,20,5,7,6,,1.5',
        '',
      ].join('\n'),
    );
    expect(usageCsv([], ['model'])).toMatch(/^model,jobs,[^\n]*\n$/);
  });

  it.each([
    ['a,b', '"a,b"'],
    ['say "x"', '"say ""x"""'],
    ['two\nlines', '"two\nlines"'],
    ['=1+1', "'=1+1"],
    ['@SUM(A1,A2)', '"\'@SUM(A1,A2)"'],
    ['-2', "'-2"],
    ['\t+1', "'\t+1"],
    [' =1+1', "' =1+1"],
    ['＝1+1', "'＝1+1"],
    ['ü 🚀', 'ü 🚀'],
  ])('quotes %j, and never starts a formula', (model, cell) => {
    expect(usageCsv([{ ...figures, model }], ['model']).replace(/^.*\n/, '')).toBe(
      `${cell},8,2,1,4,30,20,5,7,6,0.000000,1.5\n`,
    );
  });
});
