import { until } from '../../support/basics/until.js';
import { writeBudgetKey } from '../../support/doors/budget-key.js';
import { Receiver } from '../../support/service/receiver.js';
import { type Service, startService } from '../../support/service/service.js';

const inBackground = { Prefer: 'respond-async' };

interface Entry {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
  readonly error: string | null;
}

async function askInBackground(service: Service, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { status, body } = await service.post('/ask', { prompt: 'Hello' }, { ...inBackground, ...headers });
  expect(status).toBe(202);
  return String(body.job_id);
}

async function deliveriesOf(service: Service, headers: Readonly<Record<string, string>> = {}): Promise<Entry[]> {
  return (await service.get('/webhooks/deliveries', headers)).body.deliveries as Entry[];
}

describe('A receiver of notices', () => {
  it('is told of a used budget and of the end of a background job, and only an administrator sees the deliveries', async () => {
    await using receiver = await Receiver.start();
    await using key = await writeBudgetKey('tokens=5/day,scopes=ask+admin');
    await using service = await startService({ env: { ...key.env, ...receiver.env } });
    const id = await askInBackground(service, key.headers);
    const ended = await receiver.notice('job.ended');
    expect(ended).toMatchObject({ path: '/secret-path', isSigned: true });
    expect(ended.data).toMatchObject({ job_id: id, client: 'key ada', outcome: 'ok', error: null });
    const used = await receiver.notice('budget.used_up');
    expect(used).toMatchObject({ isSigned: true, data: { client: 'ada', budget: 'tokens', max: 5, period: 'day' } });
    const delivered = { status: 'delivered', attempts: 1, error: null, receiver: receiver.url };
    const all = async () => (await deliveriesOf(service, key.headers)).filter((each) => each.status === 'delivered');
    await until(async () => (await all()).length === 2, 'the record of both deliveries');
    expect(await all()).toMatchObject([
      { ...delivered, type: 'budget.used_up', client: 'key ada' },
      { ...delivered, type: 'job.ended', client: 'key ada' },
    ]);
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^model_api_webhook_attempts_total\{result="delivered"\} 2$/m);
    expect((await service.get('/webhooks/deliveries')).status).toBe(401);
    await key.change('scopes=ask+chat');
    await service.log('keys_loaded');
    expect((await service.get('/webhooks/deliveries', key.headers)).status).toBe(403);
    expect(JSON.stringify(service.logs)).not.toMatch(/secret-path|whsec_/);
  });

  it('of a client is told of its background jobs, within the URLs that its key allows', async () => {
    await using receiver = await Receiver.start();
    await using key = await writeBudgetKey(`webhooks=${receiver.url}/hooks/*`);
    const env = { ...key.env, MODEL_API_WEBHOOK_SECRET: receiver.env.MODEL_API_WEBHOOK_SECRET ?? '' };
    await using service = await startService({ env });
    const ask = (url: unknown, headers = {}) =>
      service.post('/ask', { prompt: 'Hello', callback_url: url }, { ...key.headers, ...headers });
    const { status, body } = await ask(`${receiver.url}/hooks/a`, inBackground);
    expect(status).toBe(202);
    const { path, data } = await receiver.notice('job.ended');
    expect([path, data.job_id]).toEqual(['/hooks/a', body.job_id]);
    const refusals = [
      await ask(`${receiver.url}/other`, inBackground),
      await ask('http://169.254.169.254/hooks/a', inBackground),
      await ask('not a URL', inBackground),
      await ask(7, inBackground),
      await ask(`${receiver.url}/hooks/a`), // not in the background
    ];
    const respond = (url: string, more: object) =>
      service.post(
        '/v1/responses',
        { model: 'default', input: 'Hello', ...more },
        { ...key.headers, 'X-Callback-Url': url },
      );
    const inOtherForm = [
      await respond(`${receiver.url}/other`, { background: true }),
      await respond(`${receiver.url}/hooks/b`, {}),
      await service.post(
        '/v1/chat/completions',
        { model: 'default', messages: [{ role: 'user', content: 'Hello' }] },
        {
          ...key.headers,
          'X-Callback-Url': `${receiver.url}/hooks/b`,
        },
      ),
    ];
    for (const refused of inOtherForm)
      expect([refused.status, refused.body.error]).toMatchObject([
        400,
        { message: expect.stringMatching(/callback.url/) },
      ]);
    for (const refused of refusals) {
      expect([refused.status, refused.body.error]).toEqual([400, 'validation_error']);
      expect(refused.body.message).toMatch(/^callback_url/);
    }
    expect(receiver.notices).toHaveLength(1);
    const response = await respond(`${receiver.url}/hooks/b`, { background: true });
    expect(response.status).toBe(202);
    await until(() => receiver.notices.length === 2, 'the notice of the response');
    expect(receiver.notices[1]).toMatchObject({ path: '/hooks/b', data: { job_id: response.body.job_id } });
  });

  it.each([
    [307, 'it answered 307, a redirect'],
    [500, 'it answered 500'],
  ])('that answers %d gets the notice again, and no other receiver gets it', async (code, error) => {
    await using elsewhere = await Receiver.start();
    await using receiver = await Receiver.start();
    await using service = await startService({ env: receiver.env });
    receiver.answer = (res) => void res.writeHead(code, { location: elsewhere.url }).end();
    const id = await askInBackground(service);
    const hasFailed = async () => (await deliveriesOf(service))[0]?.attempts === 1;
    await until(hasFailed, 'a failed attempt');
    expect(await deliveriesOf(service)).toMatchObject([{ id: `job_${id}`, status: 'pending', error }]);
    receiver.answer = (res) => void res.writeHead(204).end();
    await until(async () => (await deliveriesOf(service))[0]?.status === 'delivered', 'the second attempt');
    expect(receiver.notices.map((notice) => [notice.id, notice.isSigned])).toEqual(Array(2).fill([`job_${id}`, true]));
    expect(elsewhere.notices).toEqual([]);
  });
});
