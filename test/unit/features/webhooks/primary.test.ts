import { MemoryTable } from '../../../../src/features/stores/memory/memory-table.js';
import { deliveryTable } from '../../../../src/features/webhooks/deliveries.js';
import type { DeliveryList } from '../../../../src/features/webhooks/deliveries-body.js';
import { noticePoster } from '../../../../src/features/webhooks/post.js';
import { createWebhooks } from '../../../../src/features/webhooks/primary.js';
import type { PrimaryCore, PrimaryPart } from '../../../../src/primary/features/feature.js';
import type { JobForm } from '../../../../src/shared/background.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { until } from '../../../support/basics/until.js';
import { jobDone, jobRequest, plainForm } from '../../../support/jobs/job-records.js';
import { Receiver, webhookSecret } from '../../../support/service/receiver.js';

/** Returns the form of a job whose client names this URL. */
function formWith(callbackUrl: string): JobForm {
  return { ...plainForm, callbackUrl } as JobForm;
}

const allowed = 'https://example.org/hooks/';

/** Creates the part of the feature in a primary whose client `key ada` may name callbacks. */
function createPart(receiver: string | null, secret: string | null) {
  const values = { MODEL_API_WEBHOOK_URL: receiver, MODEL_API_WEBHOOK_SECRET: secret };
  const create = createWebhooks(values, secret === null ? null : noticePoster);
  const store = {
    tables: new Map([[deliveryTable.name, new MemoryTable(deliveryTable)]]),
    jobs: { shared: null, isDurable: false },
  };
  const host = { clock: new FakeClock(), log: new LogBook(), random: () => 0, product: { version: '1.2.3' } };
  const optionsOf = (client: string) => ({ featureOptions: client === 'key ada' ? { webhooks: `${allowed}*` } : {} });
  const revoked = new Set<string>();
  const clients = { optionsOf, budgets: [], hasAccess: (client: string) => !revoked.has(client) };
  const config = { store: { dataPlace: 'memory' } };
  const core = { host, store, clients, budgets: { usesOf: () => [] }, clis: [], config };
  const part = create(core as unknown as PrimaryCore) as Required<PrimaryPart>;
  const { deliveries: answer = () => null } = part.handlers;
  const deliveries = async () => ((await answer({} as never)) as DeliveryList).deliveries;
  return { part, host, revoked, deliveries, counts: () => part.counters.map(({ name, read }) => [name, read()]) };
}

const ended = { id: 'j1', request: jobRequest({ client: 'key ada' }), form: plainForm, end: jobDone() };

describe('The webhooks of a primary', () => {
  it('send, list and count a notice of a job that has ended', async () => {
    await using receiver = await Receiver.start();
    const { part, deliveries, counts } = createPart(receiver.url, webhookSecret);
    part.start();
    part.job.ended?.(ended);
    await receiver.notice('job.ended');
    await part.stop();
    expect(receiver.notices).toMatchObject([{ id: 'job_j1' }]);
    const listed = { id: 'job_j1', type: 'job.ended', client: 'key ada', receiver: receiver.url, status: 'delivered' };
    expect(await deliveries()).toMatchObject([listed]);
    expect(counts()).toEqual([['webhook_attempts_total', { delivered: 1, retried: 0, failed: 0, dropped: 0 }]]);
  });

  it('do nothing without a secret, and refuse callbacks', async () => {
    const { part, deliveries, counts } = createPart(null, null);
    part.start();
    part.job.ended?.(ended);
    const named = formWith(`${allowed}a`);
    expect(() => part.job.admit?.(ended.request, named)).toThrow('MODEL_API_WEBHOOK_SECRET');
    await part.stop();
    expect(await deliveries()).toEqual([]);
    expect(counts()).toEqual([['webhook_attempts_total', { delivered: 0, retried: 0, failed: 0, dropped: 0 }]]);
  });

  it('refuse a callback that the key of the client does not allow', async () => {
    const { part } = createPart(null, webhookSecret);
    part.job.admit?.(ended.request, formWith(`${allowed}a`));
    const other = formWith('https://evil.example/');
    expect(() => part.job.admit?.(ended.request, other)).toThrow(`begins with ${allowed}`);
  });

  it('call back no URL of a key that was revoked meanwhile, neither for a new notice nor for a stored one', async () => {
    const { part, host, revoked, deliveries } = createPart(null, webhookSecret);
    const job = { ...ended, form: formWith(`${allowed}a`) };
    part.job.ended?.(job); // is stored, and sent after the start
    revoked.add('key ada');
    part.job.ended?.({ ...job, id: 'j2' });
    part.start();
    await until(async () => (await deliveries())[0]?.attempts === 1, 'the attempt');
    await host.clock.advance(86_400_000);
    await part.stop();
    expect(await deliveries()).toMatchObject([
      { id: 'callback_j1', status: 'failed', error: 'the key of this client no longer allows this URL' },
    ]);
  });
});
