import { Account } from '../../support/agents/account.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startService } from '../../support/service/service.js';

const inSeconds = (seconds: number) => Math.ceil(Date.now() / 1000) + seconds;

/** Starts a service whose CLI `main` has the account, and whose CLI `spare` always answers. */
async function start(account: Account, env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const main = `main=claude:${script('has-an-account.pl', account.folder)}`;
  const rules = { MODEL_API_FALLBACKS: 'main>spare/echo' };
  return startService({
    env: {
      MODEL_API_CLI: 'auto',
      MODEL_API_KEY: key['X-API-Key'],
      MODEL_API_CLIS: `${main},spare=demo`,
      ...rules,
      ...env,
    },
  });
}

const key = { 'X-API-Key': 'key-of-the-fallback-test' };

function post(service: Service, path: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  return service.post(path, body, { ...key, ...headers });
}

/** Lets the next job try the refused model again. */
async function recheck(service: Service): Promise<void> {
  expect((await post(service, '/health/recheck', {})).status).toBe(200);
}

const messages = [{ role: 'user', content: 'hello' }];
/** A request to each API, and where its answer names the model. */
const apis = [
  ['/ask', { prompt: 'hello' }],
  ['/chat', { message: 'hello' }],
  ['/v1/chat/completions', { model: 'main', messages }],
  ['/v1/responses', { model: 'main', input: 'hello' }],
  ['/v1/messages', { model: 'main', messages, max_tokens: 100 }],
  ['/api/chat', { model: 'main', messages, stream: false }],
  ['/api/generate', { model: 'main', prompt: 'hello', stream: false }],
] as const;

describe('A model whose quota is used up', () => {
  it('is replaced by the rule in every API, until its reset, and never in silence', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set(`quota ${inSeconds(3600)}`);
    await using service = await start(account);
    const moved = await post(service, '/ask', { prompt: 'hello' }); // the attempt that shows the used up quota
    const fallback = [{ model: 'main', reason: 'quota' }];
    expect(moved.body).toMatchObject({ response: 'hello', model: 'spare/echo', fallback });
    for (const [path, body] of apis) {
      const answer = await post(service, path, body);
      expect([path, answer.status, answer.body.model]).toEqual([path, 200, 'spare/echo']);
      expect([path, answer.headers.get('x-fallback')]).toEqual([path, 'main quota']);
      if (path === '/ask' || path === '/chat') expect(answer.body.fallback).toEqual(fallback);
    }
    const stream = await post(service, '/ask', { prompt: 'hello', stream: true });
    expect(stream.headers.get('x-fallback')).toBe('main quota');
    expect(await account.starts()).toBe(1); // only the first job has asked the first model
    const labels = 'from="main",to="spare",reason="quota"';
    expect(await metric(service, `fallbacks_total{${labels}}`)).toBe(apis.length + 2);
    await service.log('job_fell_back', ({ from, to, reason }) => `${from} ${to} ${reason}` === 'main spare/echo quota');
    expect(await metric(service, 'jobs_total{operation="ask",outcome="ok"}')).toBe(apis.length + 1);

    const usage = await service.get('/usage?group=model', key);
    const { usage: rows } = usage.body as { usage: { model: string; jobs: Record<string, number> }[] };
    const jobs = Object.fromEntries(rows.map((row) => [row.model, row.jobs]));
    expect(jobs['spare/echo']?.ok).toBe(apis.length + 2);
    expect(Object.values(jobs).reduce((sum, { cli_error: failed = 0 }) => sum + failed, 0)).toBe(1); // the first attempt

    await account.set('ok');
    await recheck(service);
    const back = await post(service, '/ask', { prompt: 'hello' });
    expect([back.body.model, back.body.fallback, back.headers.get('x-fallback')]).toEqual([
      'main/of an account',
      undefined,
      null,
    ]);
  });

  it('moves a conversation with its text, and gets it back', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set('ok');
    await using service = await start(account, { MODEL_API_FALLBACKS: 'main>spare/eliza' });
    const say = async (message: string, conversation_id?: unknown) => {
      const { body } = await post(service, '/chat', { message, conversation_id });
      return body;
    };
    const first = await say('My name is Ada');
    await account.set(`quota ${inSeconds(3600)}`);
    const second = await say('What is my name?', first.conversation_id);
    expect(second).toMatchObject({ model: 'spare/eliza', response: 'Your name is Ada.', message_count: 4 });
    await account.set('ok');
    await recheck(service);
    expect(await say('And now?', first.conversation_id)).toMatchObject({
      model: 'main/of an account',
      message_count: 6,
    });
    await untilJobs(service, 0, 0);
  });

  it('is not replaced if the client, its key or the request forbids it', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set(`quota ${inSeconds(3600)}`);
    await using service = await start(account);
    const only = await post(service, '/ask', { prompt: 'hello' }, { 'X-No-Fallback': '1' });
    expect([only.status, only.body.reason, only.headers.get('x-fallback')]).toEqual([500, 'quota', null]);
    const odd = await post(service, '/ask', { prompt: 'hello' }, { 'X-No-Fallback': 'yes' });
    expect([odd.status, odd.body.message]).toEqual([400, 'X-No-Fallback: must be 1 or 0']);
    const listed = await post(service, '/v1/chat/completions', { model: 'main', models: ['spare/eliza'], messages });
    expect([listed.status, listed.body.model]).toEqual([200, 'spare/eliza']);
    const unknown = await post(service, '/ask', { prompt: 'hello', model: 'main,spare/none' });
    expect([unknown.status, unknown.body.error]).toEqual([400, 'validation_error']);
  });

  it('lets a background job be answered by another one, and a waiting job move', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set('hold');
    await using service = await start(account, { MODEL_API_MAX_CONCURRENT: '1' });
    const running = post(service, '/ask', { prompt: 'one' });
    await untilJobs(service, 1, 0);
    const waiting = post(service, '/ask', { prompt: 'two' });
    await untilJobs(service, 1, 1);
    await account.set(`quota ${inSeconds(3600)}`);
    const answers = await Promise.all([running, waiting]);
    expect(answers.map(({ body }) => [body.response, body.model])).toEqual([
      ['one', 'spare/echo'],
      ['two', 'spare/echo'],
    ]);
    const { body: job } = await post(service, '/ask', { prompt: 'three' }, { Prefer: 'respond-async' });
    const ended = await until(async () => {
      const { body } = await service.get(`/jobs/${job.job_id}`, key);
      return body.status === 'succeeded' ? body : undefined;
    }, 'the end of the background job');
    expect(ended).toMatchObject({ result: { response: 'three', fallback: [{ model: 'main', reason: 'quota' }] } });
    await untilTreeGone(service, 10_000);
  });
});
