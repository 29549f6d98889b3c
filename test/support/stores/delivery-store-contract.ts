import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import { openTable, type TableStore } from '../../../src/features/stores/contract/tables.js';
import { type Delivery, deliveryTable } from '../../../src/features/webhooks/deliveries.js';
import { noClient } from '../../../src/shared/client.js';
import type { StorePlaceForTests } from './store-contract.js';

const now = Date.UTC(2026, 0, 1);
const { keepMs, maxOthers } = deliveryTable;
const { max, maxOfHolder } = deliveryTable.byClients;

export function deliveryOf(id: string, more: Partial<Delivery> = {}): Delivery {
  const pending = { status: 'pending', attempts: 0, attemptedAt: null, nextAt: now, error: null } as const;
  const said = { url: null, type: 'job.ended', body: '{"odd":"ü🚀\\u0000\'"}' };
  return { id, client: noClient, createdAt: now, ...said, ...pending, ...more };
}

function ended(delivery: Delivery): Delivery {
  return { ...delivery, status: 'delivered', attempts: 1, attemptedAt: now, nextAt: null };
}

const ids = (deliveries: readonly Delivery[]) => deliveries.map(({ id }) => id);

async function addAll(
  deliveries: TableStore<Delivery>,
  count: number,
  make: (index: number) => Delivery,
): Promise<void> {
  for (let index = 0; index < count; index++) await deliveries.addRow(make(index));
}

/** Returns the deliveries in a store. */
export function deliveriesIn({ tables }: Pick<FullStore, 'tables'>): TableStore<Delivery> {
  return openTable(tables, deliveryTable);
}

type StoreTest = (store: FullStore, next: () => Promise<FullStore>) => Promise<void>;

/** Returns a function that runs a test with a new store. `next` closes the store and opens it again. */
export function withStoresOf(place: () => Promise<StorePlaceForTests>): (test: StoreTest) => Promise<void> {
  return async (test) => {
    await using at = await place();
    let store = await at.open();
    try {
      await test(store, async () => {
        await store.close();
        store = await at.open();
        return store;
      });
    } finally {
      await store.close();
    }
  };
}

/** Tests the contract of all stores for declared tables, with the table of deliveries. `isDurable`: rows survive a restart. */
export function describeDeliveryStore(
  name: string,
  isDurable: boolean,
  place: () => Promise<StorePlaceForTests>,
): void {
  const withStore = withStoresOf(place);
  const withDeliveries = (test: (deliveries: TableStore<Delivery>) => Promise<void>) =>
    withStore((store) => test(deliveriesIn(store)));

  describe(`Deliveries in ${name}`, () => {
    it('are added once for each id, and listed with the newest first', () =>
      withDeliveries(async (deliveries) => {
        expect(await deliveries.addRow(deliveryOf('a'))).toEqual({ isNew: true, dropped: 0 });
        expect(await deliveries.addRow(deliveryOf('b', { createdAt: now + 1 }))).toEqual({ isNew: true, dropped: 0 });
        expect(await deliveries.addRow(deliveryOf('a', { body: '{}' }))).toEqual({ isNew: false, dropped: 0 });
        expect(await deliveries.listRows(9)).toEqual([deliveryOf('b', { createdAt: now + 1 }), deliveryOf('a')]);
        expect(ids(await deliveries.listRows(1))).toEqual(['b']);
      }));

    it('are taken when they are due, and again only if their host does not report an attempt in time', () =>
      withDeliveries(async (deliveries) => {
        await deliveries.addRow(deliveryOf('later', { nextAt: now + 5 }));
        await deliveries.addRow(deliveryOf('first', { nextAt: now - 5 }));
        await deliveries.addRow(deliveryOf('second'));
        expect(ids(await deliveries.take(now, now + 100, 1))).toEqual(['first']);
        expect(ids(await deliveries.take(now, now + 100, 9))).toEqual(['second']);
        expect(ids(await deliveries.take(now + 99, now + 200, 9))).toEqual(['later']);
        await deliveries.updateRow(ended(deliveryOf('first')));
        const failed = deliveryOf('second', {
          attempts: 1,
          attemptedAt: now,
          nextAt: now + 150,
          error: 'it answered 500',
        });
        await deliveries.updateRow(failed);
        expect(await deliveries.take(now + 149, now + 500, 9)).toEqual([]);
        expect(await deliveries.take(now + 150, now + 500, 9)).toEqual([failed]);
        expect((await deliveries.listRows(9)).find(({ id }) => id === 'first')).toEqual(ended(deliveryOf('first')));
      }));

    it(`${isDurable ? 'survive' : 'do not survive'} a restart`, () =>
      withStore(async (store, next) => {
        await deliveriesIn(store).addRow(deliveryOf('a'));
        const deliveries = deliveriesIn(await next());
        expect(ids(await deliveries.take(now, now + 1, 9))).toEqual(isDurable ? ['a'] : []);
      }));

    it('are removed after a while once they have ended', () =>
      withDeliveries(async (deliveries) => {
        await deliveries.addRow(deliveryOf('a'));
        await deliveries.addRow(deliveryOf('b'));
        await deliveries.updateRow(ended(deliveryOf('a')));
        await deliveries.addRow(deliveryOf('c', { createdAt: now + keepMs + 1 }));
        expect(ids(await deliveries.listRows(9)).toSorted()).toEqual(expect.arrayContaining(['c']));
        expect(ids(await deliveries.listRows(9))).not.toContain('a');
        await deliveries.updateRow(ended(deliveryOf('a'))); // has no effect
        expect(ids(await deliveries.listRows(9))).not.toContain('a');
      }));

    it('are removed after a while although no other one is added, once they have ended', () =>
      withStore(async (store) => {
        const deliveries = deliveriesIn(store);
        for (const id of ['over', 'open']) await deliveries.addRow(deliveryOf(id));
        await deliveries.updateRow(ended(deliveryOf('over')));
        await store.upkeep.expireRows(now + keepMs);
        expect(ids(await deliveries.listRows(9))).toHaveLength(2);
        await store.upkeep.expireRows(now + keepMs + 1);
        expect(ids(await deliveries.listRows(9))).toEqual(['open']);
      }));

    it('are kept after a while if they have not ended, and may be added when they have ended', () =>
      withStore(async (store) => {
        const deliveries = deliveriesIn(store);
        await deliveries.addRow(deliveryOf('open'));
        await deliveries.addRow(ended(deliveryOf('over', { createdAt: now + 1 })));
        expect(ids(await deliveries.take(now, now + 1000, 10))).toEqual(['open']);
        await deliveries.addRow(deliveryOf('late', { createdAt: now + keepMs + 2 }));
        expect(ids(await deliveries.listRows(10))).toEqual(['late', 'open']);
      }));

    it('are limited for each client: the oldest is removed, first one that has ended', () =>
      withDeliveries(async (deliveries) => {
        const client = 'key ada';
        await addAll(deliveries, maxOfHolder, (index) => deliveryOf(`${index}`, { client, createdAt: now + index }));
        await deliveries.addRow(deliveryOf('of the service', { type: 'login.needed' }));
        await deliveries.updateRow(ended(deliveryOf('7', { client })));
        expect(await deliveries.addRow(deliveryOf('x', { client }))).toEqual({ isNew: true, dropped: 0 });
        expect(await deliveries.addRow(deliveryOf('y', { client }))).toEqual({ isNew: true, dropped: 1 });
        const left = ids(await deliveries.listRows(2 * maxOfHolder));
        expect(left).toHaveLength(maxOfHolder + 1);
        for (const gone of ['0', '7']) expect(left).not.toContain(gone);
        expect(left).toContain('of the service');
      }));

    it.each([
      ['sso ada/k~', 'sso ada', 'sso adam'],
      ['key bot/', 'key bot', 'key bot0'],
      ['made ci~1/', 'made ci~1', 'made ci~10'],
    ] as const)('are limited for all clients of one holder together: %s', (prefix, holder, other) =>
      withDeliveries(async (deliveries) => {
        await deliveries.addRow(deliveryOf('other', { client: other }));
        await deliveries.addRow(deliveryOf('user', { client: `user ${holder}/1` }));
        const each = (index: number) => {
          const client = index === 0 ? holder : (`${prefix}${index}` as const);
          return deliveryOf(`${index}`, { client, createdAt: now + index });
        };
        await addAll(deliveries, maxOfHolder, each);
        expect(await deliveries.addRow(each(maxOfHolder))).toEqual({ isNew: true, dropped: 1 });
        const left = ids(await deliveries.listRows(2 * maxOfHolder));
        expect(left).toEqual(expect.arrayContaining(['other', 'user', '1']));
        expect([left.length, left.includes('0')]).toEqual([maxOfHolder + 2, false]);
      }),
    );

    it('about jobs take no place of other notices, whose clients and ends do not matter', () =>
      withDeliveries(async (deliveries) => {
        const others = [
          deliveryOf('login', { type: 'login.needed' }),
          deliveryOf('budget', { type: 'budget.used_up', client: 'key 1' }),
          deliveryOf('quota', { type: 'quota.nearly_used' }),
        ];
        for (const other of others) await deliveries.addRow(other);
        await deliveries.updateRow(ended(deliveryOf('quota', { type: 'quota.nearly_used' })));
        const each = (index: number) =>
          deliveryOf(`${index}`, { client: `key ${index % 20}`, createdAt: now + 1 + index });
        await addAll(deliveries, max, each);
        const last = deliveryOf('last', { client: 'key 1', createdAt: now + 5000 });
        expect(await deliveries.addRow(last)).toEqual({ isNew: true, dropped: 1 });
        const left = ids(await deliveries.listRows(2 * max));
        expect(left).toHaveLength(max + others.length);
        expect(left).toEqual(expect.arrayContaining(['login', 'budget', 'quota', 'last', '1']));
        expect(left).not.toContain('0');
      }));

    it('about budgets, quotas and logins are limited: those about clients go before those about the service', () =>
      withDeliveries(async (deliveries) => {
        const type = 'budget.used_up';
        const client = (index: number) => (index === 0 ? noClient : (`key ${index % 20}` as const));
        const each = (index: number) => deliveryOf(`${index}`, { type, client: client(index), createdAt: now + index });
        await deliveries.addRow(deliveryOf('job', { client: 'key 1' }));
        await addAll(deliveries, maxOthers, each);
        expect(await deliveries.addRow(deliveryOf('new', { type }))).toEqual({ isNew: true, dropped: 1 });
        const left = ids(await deliveries.listRows(2 * maxOthers));
        expect(left).toHaveLength(maxOthers + 1);
        expect(left).toEqual(expect.arrayContaining(['0', 'job', 'new']));
        expect(left).not.toContain('1');
      }));

    it('are removed with their client', () =>
      withStore(async (store) => {
        const { upkeep } = store;
        const deliveries = deliveriesIn(store);
        await deliveries.addRow(deliveryOf('a', { client: 'key ada' }));
        await deliveries.addRow(deliveryOf('b', { client: 'key bob' }));
        expect(await upkeep.purge('key ada')).toMatchObject({ deliveries: 1 });
        expect(ids(await deliveries.listRows(9))).toEqual(['b']);
        const { faults } = await upkeep.verify({ conversationTtlMs: 0, jobTtlMs: 0 });
        expect(faults.filter((fault) => fault.includes('deliver'))).toEqual([]);
      }));
  });
}
