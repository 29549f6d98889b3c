import { createHmac } from 'node:crypto';
import { MemoryTable } from '../../../../src/features/stores/memory/memory-table.js';
import { type Delivery, deliveryTable } from '../../../../src/features/webhooks/deliveries.js';
import type { AttemptResult } from '../../../../src/features/webhooks/post.js';
import { type Notice, Webhooks } from '../../../../src/features/webhooks/webhooks.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { type ClientText, noClient } from '../../../../src/shared/client.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { settled } from '../../../support/basics/settled.js';
import { webhookSecret } from '../../../support/service/receiver.js';
import { deliveryOf } from '../../../support/stores/delivery-store-contract.js';

const accepted: AttemptResult = { kind: 'accepted' };
const failed: AttemptResult = { kind: 'failed', reason: 'it answered 500', isFinal: false };
const hangs = Symbol('hangs');
const hourMs = 3_600_000;
const receiver = 'https://example.org/secret-path';

type Sent = { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly body: string };

/** Creates webhooks whose receiver gives these answers in order, then accepts everything. */
function webhooksFor(...answers: readonly (AttemptResult | typeof hangs)[]) {
  const left = [...answers];
  const [clock, log, store] = [new FakeClock(), new LogBook(), new MemoryTable<Delivery>(deliveryTable)];
  const sent: Sent[] = [];
  const post = (url: string, headers: Sent['headers'], body: string, signal: AbortSignal): Promise<AttemptResult> => {
    sent.push({ url, headers, body });
    const answer = left.shift() ?? accepted;
    if (answer !== hangs) return Promise.resolve(answer);
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve({ kind: 'failed', reason: (signal.reason as Error).message, isFinal: false });
      });
    });
  };
  const mayCall = () => true;
  const parts = { receiver, secret: webhookSecret, store, isShared: false, mayCall, post, clock, log, random: () => 0 };
  const webhooks = new Webhooks(parts);
  const ids = () => sent.map(({ headers }) => headers['webhook-id']);
  const state = async () =>
    (await store.listRows(9)).map(({ id, status, attempts, error }) => [id, status, attempts, error]);
  return { webhooks, parts, clock, log, store, sent, ids, state };
}

function notice(id: string, client: ClientText = noClient): Notice {
  return { id, client, type: 'budget.used_up', data: { client: 'ada' } };
}

describe('A notice', () => {
  it('is sent at once, signed as in Standard Webhooks, and then counts as delivered', async () => {
    const { webhooks, sent, state, log } = webhooksFor();
    webhooks.send(notice('a'));
    await settled();
    const [{ url, headers, body }] = sent as [Sent];
    expect(url).toBe(receiver);
    const said = { type: 'budget.used_up', timestamp: '2026-01-01T00:00:00.000Z', data: { client: 'ada' } };
    expect(JSON.parse(body)).toEqual(said);
    expect(headers['webhook-timestamp']).toBe(String(Date.UTC(2026, 0, 1) / 1000));
    const signed = createHmac('sha256', Buffer.alloc(32, 7)).update(`a.${headers['webhook-timestamp']}.${body}`);
    expect(headers['webhook-signature']).toBe(`v1,${signed.digest('base64')}`);
    expect(await state()).toEqual([['a', 'delivered', 1, null]]);
    expect([webhooks.counts, log.entries]).toEqual([{ delivered: 1, retried: 0, failed: 0, dropped: 0 }, []]);
  });

  it('to a URL of a client is signed with a secret of this client', async () => {
    const { webhooks, sent } = webhooksFor();
    webhooks.send(notice('a', 'key ada'), 'https://ada.example/hook');
    await settled();
    const [{ url, headers, body }] = sent as [Sent];
    expect(url).toBe('https://ada.example/hook');
    const key = createHmac('sha256', Buffer.alloc(32, 7)).update('key ada').digest();
    const signed = createHmac('sha256', key).update(`a.${headers['webhook-timestamp']}.${body}`);
    expect(headers['webhook-signature']).toBe(`v1,${signed.digest('base64')}`);
  });

  it('is given up if its receiver is not configured any more', async () => {
    const { parts, sent, state } = webhooksFor();
    const webhooks = new Webhooks({ ...parts, receiver: null });
    webhooks.send(notice('a'));
    await settled();
    expect([sent, await state()]).toEqual([[], [['a', 'failed', 1, 'no receiver is configured any more']]]);
  });

  it('is sent once if it is reported twice', async () => {
    const { webhooks, ids } = webhooksFor();
    webhooks.send(notice('a'));
    webhooks.send(notice('a'));
    await settled();
    expect(ids()).toEqual(['a']);
  });

  it('is sent again after a failure with growing pauses, with the same id and a new time, until it is accepted', async () => {
    const { webhooks, clock, sent, ids, state, log } = webhooksFor(failed, failed, failed);
    webhooks.startDeliveries();
    webhooks.send(notice('a'));
    await settled();
    expect(await state()).toEqual([['a', 'pending', 1, 'it answered 500']]);
    for (const [ms, count] of [
      [4999, 1],
      [1, 2],
      [24_999, 2],
      [1, 3],
      [124_999, 3],
      [5001, 4],
    ] as const) {
      await clock.advance(ms);
      expect(sent).toHaveLength(count);
    }
    expect(new Set(ids())).toEqual(new Set(['a']));
    expect(new Set(sent.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(4);
    expect(await state()).toEqual([['a', 'delivered', 4, null]]);
    expect(webhooks.counts).toMatchObject({ delivered: 1, retried: 3 });
    expect(log.entries.map(({ event, fields }) => [event, fields])).toEqual([
      ['webhook_failed', { receiver: 'https://example.org', error: 'it answered 500' }],
      ['webhook_back', { receiver: 'https://example.org' }],
    ]);
  });

  it('is given up after a day, or at once if the receiver is gone', async () => {
    const { webhooks, clock, sent, state, log } = webhooksFor(...Array<AttemptResult>(99).fill(failed));
    webhooks.startDeliveries();
    webhooks.send(notice('a'));
    await clock.advance(24 * hourMs - 1);
    expect(await state()).toMatchObject([['a', 'pending', sent.length, 'it answered 500']]);
    await clock.advance(10_000);
    expect(await state()).toMatchObject([['a', 'failed', sent.length, 'it answered 500']]);
    expect(sent.length).toBeGreaterThan(8);
    const given = { webhook: 'a', type: 'budget.used_up', error: 'it answered 500', count: 1 };
    expect(log.entries.at(-1)).toMatchObject({ level: 'error', event: 'webhook_given_up', fields: given });

    const gone = webhooksFor({ kind: 'failed', reason: 'it answered 410', isFinal: true });
    gone.webhooks.send(notice('b'));
    await settled();
    expect(await gone.state()).toEqual([['b', 'failed', 1, 'it answered 410']]);
  });

  it('is cut off after ten seconds without an answer, and other receivers do not wait for that', async () => {
    const { webhooks, clock, sent, state, store } = webhooksFor(hangs);
    webhooks.startDeliveries();
    webhooks.send(notice('a'));
    await settled();
    await store.addRow(deliveryOf('other', { url: 'https://other.example.org/' }));
    await clock.advance(9999);
    expect(sent.map(({ url }) => url)).toEqual([receiver, 'https://other.example.org/']);
    await clock.advance(1);
    expect((await state()).find(([id]) => id === 'a')).toEqual(['a', 'pending', 1, 'no answer in 10 s']);
    await clock.advance(5000);
    expect((await state()).find(([id]) => id === 'other')).toEqual(['other', 'delivered', 1, null]);
  });

  it('waits while its receiver rests after a failure, so that many notices do not burden it', async () => {
    const { webhooks, clock, ids } = webhooksFor(failed);
    webhooks.startDeliveries();
    for (const id of ['a', 'b', 'c']) webhooks.send(notice(id));
    await settled();
    expect(ids()).toEqual(['a']);
    await clock.advance(60_000);
    expect(ids().toSorted()).toEqual(['a', 'a', 'b', 'c']);
  });

  it.each<[string, AttemptResult | typeof hangs]>([
    ['fails', failed],
    ['hangs', hangs],
  ])('waits for no client whose callback to the same host %s', async (_, answer) => {
    const { webhooks, ids } = webhooksFor(answer);
    const callback = 'https://example.org/hook';
    webhooks.startDeliveries();
    webhooks.send(notice('eve-1', 'key eve'), callback);
    await settled();
    webhooks.send(notice('eve-2', 'key eve'), callback);
    webhooks.send(notice('ada', 'key ada'), callback);
    webhooks.send(notice('operator'));
    await settled();
    expect(ids().toSorted()).toEqual(['ada', 'eve-1', 'operator']);
  });

  it('of the operator is sent while the callbacks of 100 clients hang', async () => {
    const { webhooks, clock, ids } = webhooksFor(...Array.from({ length: 100 }, (): typeof hangs => hangs));
    webhooks.startDeliveries();
    for (let number = 0; number < 100; number++)
      webhooks.send(notice(`job-${number}`, `key n${number}`), `https://host${number}.example.org/`);
    await settled();
    webhooks.send(notice('operator'));
    await settled();
    expect(ids()).toHaveLength(65);
    expect(ids()).toContain('operator');
    const closing = webhooks.closeWebhooks();
    await clock.advance(2000);
    await closing;
  });

  it('of another client is sent while callbacks of all keys of one person hang', async () => {
    const { webhooks, clock, ids } = webhooksFor(...Array.from({ length: 16 }, (): typeof hangs => hangs));
    webhooks.startDeliveries();
    for (let number = 0; number < 100; number++)
      webhooks.send(notice(`job-${number}`, `sso eve/k~${number}`), `https://host${number}.example.org/`);
    webhooks.send(notice('other', 'sso ada'), 'https://ada.example.org/');
    await settled();
    expect(ids()).toHaveLength(17);
    expect(ids()).toContain('other');
    const closing = webhooks.closeWebhooks();
    await clock.advance(2000);
    await closing;
  });

  it('is sent by the next service if this one ends during the attempt', async () => {
    const { webhooks, parts, clock, ids } = webhooksFor(hangs);
    webhooks.startDeliveries();
    webhooks.send(notice('a'));
    await settled();
    const closing = webhooks.closeWebhooks();
    await clock.advance(2000);
    await closing;
    const other = new Webhooks({ ...parts, isShared: true });
    other.startDeliveries(); // cannot know whether the attempt is still being made
    await settled();
    expect(ids()).toEqual(['a']);
    await other.closeWebhooks();
    const next = new Webhooks(parts);
    next.startDeliveries();
    await settled();
    expect(ids()).toEqual(['a', 'a']);
    expect(next.counts.delivered).toBe(1);
  });

  it('is stored before the end of the service, also if the store has refused it or is slow', async () => {
    const { parts, store } = webhooksFor();
    const adding = withResolvers();
    let isRefused = true;
    const add: typeof store.addRow = async (delivery) => {
      if (isRefused) throw storeUnavailable();
      await adding.promise;
      return store.addRow(delivery);
    };
    const slow = {
      addRow: add,
      take: (...order: Parameters<typeof store.take>) => store.take(...order),
      updateRow: (delivery: Parameters<typeof store.updateRow>[0]) => store.updateRow(delivery),
      listRows: (limit: number) => store.listRows(limit),
    };
    const webhooks = new Webhooks({ ...parts, store: slow });
    webhooks.send(notice('refused'));
    await settled();
    isRefused = false;
    webhooks.send(notice('slow'));
    let isClosed = false;
    const closing = webhooks.closeWebhooks().then(() => {
      isClosed = true;
    });
    await settled();
    expect(isClosed).toBe(false);
    adding.resolve();
    await closing;
    expect((await store.listRows(9)).map(({ id, status }) => [id, status]).toSorted()).toEqual([
      ['refused', 'pending'],
      ['slow', 'pending'],
    ]);
  });

  it('reports a defect of the store', async () => {
    const { parts, store, log } = webhooksFor();
    const add = () => Promise.reject(new TypeError('a defect'));
    const webhooks = new Webhooks({ ...parts, store: Object.assign(Object.create(store), { addRow: add }) });
    webhooks.send(notice('a'));
    await settled();
    expect(log.events).toEqual(['internal_error']);
  });

  it('is stored later if the store is unavailable, and is dropped only if too many wait for it', async () => {
    const { parts, clock, ids, log } = webhooksFor();
    let isDown = true;
    const { store } = parts;
    const broken = {
      addRow: async (delivery: Parameters<typeof store.addRow>[0]) => {
        if (isDown) throw storeUnavailable();
        return store.addRow(delivery);
      },
      take: (...order: Parameters<typeof store.take>) =>
        isDown ? Promise.reject(storeUnavailable()) : store.take(...order),
      updateRow: (delivery: Parameters<typeof store.updateRow>[0]) => store.updateRow(delivery),
      listRows: (limit: number) => store.listRows(limit),
    };
    const webhooks = new Webhooks({ ...parts, store: broken });
    webhooks.startDeliveries();
    for (let index = 0; index < 101; index++) webhooks.send(notice(`${index}`));
    await clock.advance(10_000);
    expect(ids()).toEqual([]);
    expect(webhooks.counts.dropped).toBe(1);
    expect(log.events).toEqual(['webhook_given_up']);
    isDown = false;
    await clock.advance(10_000);
    expect(ids()).toHaveLength(100);
  });
});
