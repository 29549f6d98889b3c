import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { type Service, startService } from '../../support/service/service.js';

const alice = { 'x-api-key': 'key-of-alice' };
const bob = { authorization: 'Bearer key-of-bob' };
const today = () => new Date().toISOString().slice(0, 10);

interface Row {
  readonly client: string;
  readonly kind: string;
  readonly refused: number;
  readonly jobs: Readonly<Record<string, number>>;
}

async function usageOf(service: Service, query = '', headers: Record<string, string> = {}): Promise<Row[]> {
  const { status, body } = await service.get(`/usage${query}`, headers);
  expect(status).toBe(200);
  return body.usage as Row[];
}

describe('GET /usage with API keys', () => {
  it('shows every client to every key, by the outcome of its jobs', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'keys');
    await writeFile(file, 'alice key-of-alice\nbob key-of-bob\n');
    await using service = await startService({
      env: { MODEL_API_KEY_FILE: file, MODEL_API_RATE_LIMIT_MAX_REQUESTS: '3' },
    });
    for (const prompt of ['one', 'two', 'three']) await service.post('/ask', { prompt }, alice);
    await service.post('/chat', { message: 'four' }, bob);
    await service.post('/ask', { prompt: '' }, bob); // an invalid request is neither a job nor a refusal
    await service.post('/ask', { prompt: 'five' }, bob);
    expect((await service.post('/ask', { prompt: 'six' }, bob)).status).toBe(429);
    expect((await service.get('/usage')).status).toBe(401);

    const rows = await usageOf(service, `?since=${today()}`, bob);
    const tokens = { input: expect.any(Number), cached_input: 0, cache_write: 0, output: expect.any(Number) };
    const row = {
      day: today(),
      kind: 'key',
      tokens,
      web_searches: 0,
      cost_usd: null,
      model_seconds: expect.any(Number),
    };
    expect(rows).toMatchObject([
      { ...row, client: 'alice', jobs: { ok: 3, cancelled: 0 }, refused: 0 },
      { ...row, client: 'bob', jobs: { ok: 2 }, refused: 1 },
    ]);
    expect(await usageOf(service, '?until=2026-01-31', alice)).toEqual([]);
    const scrape = (await service.get('/metrics')).text;
    expect(scrape).toMatch(/^model_api_client_jobs_total\{client="alice",outcome="ok"\} 3$/m);
    expect(scrape).toMatch(/^model_api_client_refused_total\{client="bob"\} 1$/m);

    const env = { ...envFor(service), MODEL_API_KEY: 'key-of-alice' };
    const { code, stdout } = await runCommand(['usage', '--since', today()], { env });
    expect([code, stdout.split('\n')[0]]).toEqual([0, expect.stringMatching(/^day +client +jobs +failed/)]);
    expect(stdout).toMatch(new RegExp(`^${today()} +alice +3 +0 +0 +0 `, 'm'));
    expect(JSON.parse((await runCommand(['usage', '--json'], { env })).stdout)).toMatchObject({ usage: rows });
    const month = today().slice(0, 7);
    const all = `?group=client,model,month&from=${month}&to=${month}`;
    const [byModel] = await usageOf(service, all, bob);
    expect(byModel).toMatchObject({ month, client: 'alice', kind: 'key', model: 'eliza', jobs: { ok: 3 } });
    expect(byModel).not.toHaveProperty('day');
    expect(await usageOf(service, '?group=account', bob)).toMatchObject([
      { account: null, jobs: { ok: 5 }, refused: 1 },
    ]);
    const { text, headers } = await service.get(`/usage${all}`, { ...bob, accept: 'text/csv' });
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const names =
      'month,client,kind,model,jobs,failed,cancelled,refused,input_tokens,cached_input_tokens,cache_write_tokens';
    expect(text.split('\n')[0]).toBe(`${names},output_tokens,web_searches,cost_usd,model_seconds`);
    const csv = ['usage', '--by', 'client,model,month', '--month', month, '--csv'];
    expect((await runCommand(csv, { env })).stdout).toBe(text);
    const { stdout: table } = await runCommand(['usage', '--by', 'model', '--month', month], { env });
    expect(table).toMatch(/^model +jobs +failed .*tokens in +cached +cache write +tokens out.*\n(.*\n)?eliza +5 /);
    for (const wrong of [
      ['--since', 'today'],
      ['--by', 'week'],
      ['--month', '2026-13'],
      ['--month', month, '--since', month],
      ['--csv', '--json'],
    ]) {
      expect(await runCommand(['usage', ...wrong], { env })).toMatchObject({ code: 64, stdout: '' });
    }
    expect(await runCommand(['usage'], { env: envFor(service) })).toMatchObject({ code: 77, stdout: '' });
  });
});

describe('GET /usage without API keys', () => {
  it('shows each client only its usage, and rejects an invalid day', async () => {
    await using service = await startService({ env: { MODEL_API_TRUST_PROXY: '127.0.0.1' } });
    const [one, other] = ['192.0.2.1', '192.0.2.2'].map((address) => ({ 'x-forwarded-for': address }));
    expect(await usageOf(service, '', one)).toEqual([]);
    expect((await runCommand(['usage'], { env: envFor(service) })).stdout).toBe('No jobs yet.\n');
    const past = await runCommand(['usage', '--month', '2020-01'], { env: envFor(service) });
    expect(past.stdout).toBe('No jobs in this period.\n');
    for (const client of [one, one, other]) await service.post('/ask', { prompt: 'Hi' }, client);
    for (const [headers, ok] of [
      [one, 2],
      [other, 1],
    ] as const) {
      const rows = await usageOf(service, '', headers);
      expect(rows).toMatchObject([{ client: headers?.['x-forwarded-for'], kind: 'address', jobs: { ok } }]);
    }
    const bad = ['?since=yesterday', '?since=2026-13-01', '?until=', '?since=2026-01-01&since=2026-01-02'];
    const badGroups = ['?group=', '?group=week', '?group=client,', '?group=client&group=model'];
    const badPeriods = [
      '?since=2026-01-02&until=2026-01-01',
      '?from=2026-02&to=2026-01',
      '?from=2026-01&since=2026-01',
    ];
    for (const query of [...bad, ...badPeriods, ...badGroups, '?to=2026-00']) {
      const { status, body } = await service.get(`/usage${query}`);
      expect([status, body.error]).toEqual([400, 'validation_error']);
    }
  });
});
