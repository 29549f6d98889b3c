import * as atTerminal from '../../../src/shared/text/format.js';
import { consolePart } from '../../support/clients/console-parts.js';

interface Figures {
  sumOf(rows: readonly object[]): object;
  byGroup(rows: readonly object[], groups: readonly string[]): readonly object[];
  byTime(rows: readonly object[], unit: string, times: readonly string[]): readonly object[];
  lastDays(nowMs: number, count: number): string[];
  periodOf(choice: string, nowMs: number): object & { readonly times: readonly string[] };
}

const parts = consolePart<Figures>('usage/sums.mjs');

const tokens = { input: 10, cached_input: 4, cache_write: 1, output: 2 };
const row = (day: string, client: string, values: object = {}) => ({
  ...{ day, client, kind: 'key', jobs: { ok: 1 }, refused: 0, tokens, web_searches: 2 },
  ...{ cost_usd: null, model_seconds: 1.5, ...values },
});

describe('Usage', () => {
  it('is summed up: jobs of every outcome, failed ones without cancelled ones, cost if it is known', async () => {
    const { sumOf } = await parts;
    const rows = [
      row('2026-03-01', 'a', { jobs: { ok: 3, cancelled: 1, timeout: 2, cli_error: 1 }, refused: 4 }),
      row('2026-03-02', 'a', { cost_usd: 0.25 }),
      row('2026-03-02', 'b', { jobs: {}, cost_usd: 0.5 }),
    ];
    expect(sumOf(rows)).toEqual({
      ...{ jobs: 8, failed: 3, refused: 4, inputTokens: 30, cachedTokens: 12, cacheWriteTokens: 3, outputTokens: 6 },
      ...{ searches: 6, costUsd: 0.75, modelMs: 4500 },
    });
    expect(sumOf([])).toMatchObject({ jobs: 0, costUsd: null });
  });

  it('is grouped by client: a key and a user of the same name are two', async () => {
    const { byGroup } = await parts;
    const rows = [row('2026-03-01', 'a'), row('2026-03-01', 'a', { kind: 'user' }), row('2026-03-02', 'a')];
    expect(byGroup(rows, ['client'])).toMatchObject([
      { names: ['a'], kind: 'key', jobs: 2, inputTokens: 20 },
      { names: ['a'], kind: 'user', jobs: 1 },
    ]);
  });

  it('is grouped by client and model, one of which may be unknown', async () => {
    const { byGroup } = await parts;
    const models = ['opus', null, 'opus', 'haiku'];
    const rows = models.map((model, index) => row(`2026-03-0${index + 1}`, 'a', { model }));
    expect(byGroup(rows, ['client', 'model'])).toMatchObject([
      { names: ['a', 'opus'], jobs: 2 },
      { names: ['a', null], jobs: 1 },
      { names: ['a', 'haiku'], jobs: 1 },
    ]);
  });

  it('is shown by day as long as all days of the period are stored, otherwise by month', async () => {
    const { periodOf } = await parts;
    const now = Date.parse('2026-11-27T12:00:00Z');
    expect(periodOf('30', now)).toMatchObject({ unit: 'day', from: '2026-10-29', to: '2026-11-27' });
    expect(periodOf('2026-11', now)).toMatchObject({ unit: 'day', from: '2026-11', to: '2026-11' });
    expect(periodOf('2026-11', now).times).toHaveLength(27);
    expect(periodOf('2026-08', now)).toEqual({ unit: 'month', times: ['2026-08'], from: '2026-08', to: '2026-08' });
    expect(periodOf('all', now)).toMatchObject({ unit: 'month', from: '2024-12', to: '2026-11' });
    expect(periodOf('all', now).times).toHaveLength(24);
  });

  it('is grouped by day, including days without any, up to today in UTC', async () => {
    const { byTime, lastDays } = await parts;
    const days = lastDays(Date.parse('2026-03-02T23:30:00-01:00'), 3);
    expect(days).toEqual(['2026-03-01', '2026-03-02', '2026-03-03']);
    const rows = [row('2026-03-01', 'a'), row('2026-03-03', 'a'), row('2026-03-03', 'b')];
    expect(byTime(rows, 'day', days)).toMatchObject([
      { at: '2026-03-01', jobs: 1 },
      { at: '2026-03-02', jobs: 0, costUsd: null },
      { at: '2026-03-03', jobs: 2 },
    ]);
  });
});

describe('The texts of the set-up', () => {
  interface Texts {
    accessText(setup: { keys: readonly string[]; needs_key: boolean }): string;
    faultsText(file: { faults: number }): string;
    mcpCommand(url: string, needsKey: boolean): string;
    ollamaVariable(url: string): string;
    terminationText(termination: { means: string; no_cgroup: string | null }): string;
  }
  const texts = consolePart<Texts>('setup/page.mjs');

  it('show which clients are allowed', async () => {
    const { accessText } = await texts;
    expect(accessText({ keys: [], needs_key: false })).toBe('none: requests need no key');
    expect(accessText({ keys: [], needs_key: true })).toContain('every request is refused');
    expect(accessText({ keys: ['a'], needs_key: true })).toBe('one key; every request needs it');
    expect(accessText({ keys: ['a', 'b'], needs_key: true })).toBe('2 keys; every request needs one');
  });

  it('show whether a file with keys or accounts has faults', async () => {
    const { faultsText } = await texts;
    expect([0, 1, 2].map((faults) => faultsText({ faults }))).toEqual([
      'no faults',
      '1 fault: refused, and named in the log',
      '2 faults: refused, and named in the log',
    ]);
  });

  it('show how Claude Code uses the service as a tool, without any key', async () => {
    const { mcpCommand } = await texts;
    expect(mcpCommand('http://a:5051/mcp', false)).toBe('claude mcp add --transport http relay http://a:5051/mcp');
    const header = /http:\/\/a\/mcp --header "Authorization: Bearer \$MODEL_API_KEY"$/;
    expect(mcpCommand('http://a/mcp', true)).toMatch(header);
  });

  it('show how Ollama clients use the service', async () => {
    const { ollamaVariable } = await texts;
    expect(ollamaVariable('http://a:11434/')).toBe('export OLLAMA_HOST=http://a:11434');
    expect(ollamaVariable('https://a/relay')).toBe('export OLLAMA_HOST=https://a/relay');
  });

  it('show how processes are contained', async () => {
    const { terminationText } = await texts;
    expect(terminationText({ means: 'cgroup', no_cgroup: null })).toBe('a cgroup for each job');
    const group = terminationText({ means: 'process-group', no_cgroup: 'no right' });
    expect(group).toContain('cgroups are unavailable: no right');
  });

  it('show a command as typed, in the browser and in a terminal', async () => {
    const shell = await consolePart<typeof atTerminal>('base/format.mjs');
    const typed = ['a-b', '{model}', `'it'\\''s'`, "'a b'", "''"];
    for (const { shellWord } of [shell, atTerminal])
      expect(['a-b', '{model}', "it's", 'a b', ''].map(shellWord)).toEqual(typed);
  });
});
