import { join } from 'node:path';
import { Reservations } from '../../../../src/features/reservations/reservations.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { Ticket } from '../../../../src/primary/jobs/ticket.js';
import type { OperatorAct } from '../../../../src/shared/acts.js';
import { type ApiKey, digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { randomNumbers } from '../../../support/basics/random.js';
import { TestRoom } from '../../../support/jobs/test-room.js';

const minute = 60_000;
const hour = 60 * minute;
const root = { client: 'key root' as const, isAdmin: true, requestId: 'request-1' };

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

interface Options {
  readonly maxActive?: number;
  readonly isAuditBroken?: boolean;
  readonly clock?: FakeClock;
  readonly isInMemory?: boolean;
}

const member = (name: string, group: string | null): ApiKey => ({
  ...plainOptions,
  name,
  group,
  digest: digestOf(name),
});

async function create({ maxActive = 4, isAuditBroken = false, clock = new FakeClock(), isInMemory }: Options = {}) {
  const { groupLines } = readKeysFile('@bio101 tokens=9/day\n@lab tokens=9/day', keyOptions);
  const members = Array.from({ length: 30 }, (_, index) => member(`bio${index}`, 'bio101'));
  const namedKeys = [...members, member('ada', 'lab'), member('eve', null)];
  const settings = { apiKeys: [], namedKeys, groupLines, personLines: [], needsKey: true };
  const clients = new Clients({ ...settings, rateMaxRequests: 0, rateWindowMs: 1000 }, clock);
  const test = new TestRoom({ maxActive }, undefined, clock);
  const acts: OperatorAct[] = [];
  const path = isInMemory ? null : join(folder.path, 'reservations.json');
  const reservations = new Reservations({
    ...{ clients, room: test.room, clock, log: new LogBook(), place: { shared: null, path, place: 'file' } },
    beforeAct: async (act) => {
      if (isAuditBroken) throw storeUnavailable('the audit file cannot be written');
      acts.push(act);
    },
  });
  await reservations.refresh();
  const at = (ms: number) => new Date(clock.now() + ms).toISOString();
  const reserve = (fromMs: number, forMs: number, slots = 2, group = 'bio101') =>
    reservations.reserve(root, { group, slots, begins_at: at(fromMs), seconds: forMs / 1000 });
  const admit = (name: string) => test.admit(`key ${name}`, 1, { gates: reservations.gatesOf(`key ${name}`) });
  return { reservations, reserve, clock, test, admit, acts, clients };
}

const refusal = (path: string) =>
  expect.objectContaining({ code: 'validation_error', details: [{ path, message: expect.any(String) }] });

describe('A reservation', () => {
  it.each([60, 61, 62])(
    'that ends while the status is read is in it with its end, or not at all (%p s)',
    async (seconds) => {
      let reads = 0;
      const clock = new (class extends FakeClock {
        override now(): number {
          return super.now() + 1000 * reads++;
        }
      })();
      const { reservations, reserve } = await create({ clock });
      await reserve(0, 1000 * seconds);
      for (let count = 0; count < 80; count++)
        for (const { until } of reservations.shown) expect(until).toMatch(/^\d{4}-/);
      expect(reservations.shown).toEqual([]);
    },
  );

  it('is in the status while it holds, and is why jobs of others wait while jobs of its group run or wait', async () => {
    const { reservations, reserve, admit, clock } = await create({ maxActive: 2 });
    await reserve(0, 2 * hour, 1);
    await reserve(0, hour, 1);
    const until = new Date(clock.now() + hour).toISOString();
    expect(reservations.shown).toEqual([{ group: 'bio101', slots: 2, running: 0, until }]);
    const reasonsOfAda = () => reservations.precedenceOver({ client: 'key ada' });
    expect(reasonsOfAda()).toEqual([]);
    admit('ada');
    admit('bio1');
    expect(reasonsOfAda()).toEqual([
      `2 slots are reserved for the group bio101 until ${until}, and its jobs go first.`,
    ]);
    expect(reservations.precedenceOver({ client: 'key bio2' })).toEqual([]);
    await clock.advance(hour);
    expect(reasonsOfAda()).toEqual([expect.stringMatching(/^1 slot is reserved/)]);
    await clock.advance(hour);
    expect([reservations.shown, reasonsOfAda()]).toEqual([[], []]);
  });

  it('is stored, shown, audited once however often it is requested, and survives a restart', async () => {
    const { reserve, reservations, acts, clock } = await create();
    const [first, again] = [await reserve(hour, hour), await reserve(hour, hour)];
    expect([again, acts.length]).toEqual([first, 1]);
    expect(acts[0]).toMatchObject({ act: 'slots_reserved', by: 'key root' });
    const { reservations: next } = await create({ clock });
    expect(next.list()).toEqual(reservations.list());
    expect(next.list()).toMatchObject([{ group: 'bio101', slots: 2, is_active: false, is_stored: true }]);
  });

  it('may be requested again while it is active', async () => {
    const { reserve, acts, clock } = await create();
    const first = await reserve(0, hour);
    await clock.advance(2 * minute);
    expect((await reserve(-2 * minute, hour)).id).toBe(first.id);
    expect(acts).toHaveLength(1);
    await expect(reserve(-2 * minute, hour, 1)).rejects.toEqual(refusal('begins_at'));
  });

  it('says whether it ends with the service', async () => {
    const { reserve } = await create({ isInMemory: true });
    expect((await reserve(hour, hour)).is_stored).toBe(false);
  });

  it('is refused if it is in the past, too far away, too large, or for no group', async () => {
    const { reserve } = await create();
    await expect(reserve(-2 * minute, hour)).rejects.toEqual(refusal('begins_at'));
    await expect(reserve(367 * 24 * hour, hour)).rejects.toEqual(refusal('begins_at'));
    await expect(reserve(0, hour, 5)).rejects.toEqual(refusal('slots'));
    for (const group of ['physics', '*', '', '__proto__', 'bio101 ']) {
      await expect(reserve(0, hour, 1, group)).rejects.toEqual(refusal('group'));
    }
  });

  it('never leaves more slots reserved than there are, at any time', async () => {
    const { reserve } = await create();
    await reserve(0, 2 * hour, 2);
    await reserve(3 * hour, 2 * hour, 3);
    await expect(reserve(hour, 3 * hour, 2, 'lab')).rejects.toEqual(refusal('slots'));
    await expect(reserve(-minute / 2, 10 * hour, 2, 'lab')).rejects.toEqual(refusal('slots'));
    await reserve(2 * hour, hour, 4, 'lab'); // between the two
    await reserve(hour, hour, 2, 'lab');
    await expect(reserve(hour, minute, 1, 'lab')).rejects.toEqual(refusal('slots'));
  });

  it('ends by itself, or when it is cancelled, and is then forgotten', async () => {
    const { reserve, reservations, clock } = await create();
    const { id } = await reserve(minute, hour, 1);
    await reserve(minute, hour, 2);
    expect(reservations.reservedSlots).toEqual({});
    await clock.advance(minute);
    expect(reservations.reservedSlots).toEqual({ bio101: 3 });
    await reservations.cancel(root, id);
    await expect(reservations.cancel(root, id)).rejects.toMatchObject({ code: 'not_found' });
    expect(reservations.reservedSlots).toEqual({ bio101: 2 });
    await clock.advance(hour);
    await reservations.refresh();
    expect([reservations.reservedSlots, reservations.list()]).toEqual([{}, []]);
  });

  it('has no effect without a record in the audit', async () => {
    const { reserve, reservations } = await create({ isAuditBroken: true });
    await expect(reserve(0, hour)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(reservations.list()).toEqual([]);
  });

  it('of a group that no longer has a line reserves nothing', async () => {
    const { reserve, clients, reservations } = await create();
    await reserve(0, hour);
    clients.replaceNamedKeys({ keys: [member('bio1', 'bio101')], groupLines: [], personLines: [] });
    expect(reservations.gatesOf('key bio1')).toEqual([]);
  });

  it('counts the jobs of a person who has sent no request since the start for the groups of each job', async () => {
    const { reservations } = await create();
    expect(reservations.gatesOf('sso ann', ['bio101']).map(({ name }) => name)).toEqual(['reservations of bio101']);
    expect(reservations.gatesOf('sso ann')).toEqual([]);
  });

  it('is limited in number', async () => {
    const { reserve } = await create();
    for (let index = 0; index < 100; index++) await reserve(index * 2 * minute, minute, 1);
    await expect(reserve(hour * 24, minute, 1)).rejects.toMatchObject({ code: 'forbidden' });
  });
});

describe('The waiting room with a reservation', () => {
  it('gives unused slots to others, and the next free ones to the group', async () => {
    const { reserve, admit, clock } = await create({ maxActive: 2 });
    await reserve(0, hour, 1);
    const others = ['eve', 'ada', 'eve', 'ada'].map(admit);
    expect(others.map(({ isWaiting }) => isWaiting)).toEqual([false, false, true, true]);
    const mine = [admit('bio1'), admit('bio2')];
    others[0]?.release();
    expect([...mine, ...others.slice(2)].map(({ isWaiting }) => isWaiting)).toEqual([false, true, true, true]);
    await clock.advance(hour);
  });

  it('counts the jobs that ran before the begin', async () => {
    const { reserve, admit, test } = await create({ maxActive: 2 });
    const [mine, other] = [admit('bio1'), admit('eve')];
    await reserve(0, hour, 1);
    const [next, more] = [admit('ada'), admit('bio2')];
    other.release();
    expect([mine.isWaiting, next.isWaiting, more.isWaiting, test.room.active]).toEqual([false, false, true, 2]);
  });

  it.each([1, 2, 3])('keeps it within the length of one job, and lets nobody else starve (seed %i)', async (seed) => {
    const random = randomNumbers(seed);
    const { reserve, admit, clock } = await create({ maxActive: 4 });
    const longestMs = 5 * minute;
    const step = minute / 2;
    await reserve(30 * minute, hour, 3);
    const [running, waiting] = [new Map<Ticket, number>(), new Map<Ticket, { name: string; at: number }>()];
    const waits = { mine: 0, others: 0 };
    let served = 0;
    for (let ms = 0; ms < 2 * hour; ms += step) {
      for (const [ticket, until] of running) {
        if (until > ms) continue;
        running.delete(ticket);
        ticket.release();
      }
      const isReserved = ms >= 30 * minute && ms < 90 * minute;
      const names = [...(isReserved ? ['bio0', 'bio1', 'bio2'] : []), 'eve', 'ada'];
      for (const name of names) {
        const has = (each: { name: string }) => each.name === name;
        if (![...waiting.values()].some(has)) waiting.set(admit(name), { name, at: ms });
      }
      for (const [ticket, { name, at }] of waiting) {
        const waited = ms - at;
        if (isReserved && name.startsWith('bio') && running.size > 0) waits.mine = Math.max(waits.mine, waited);
        if (!name.startsWith('bio')) waits.others = Math.max(waits.others, waited);
        if (ticket.isWaiting) continue;
        waiting.delete(ticket);
        if (!name.startsWith('bio')) served++;
        running.set(ticket, ms + step + Math.floor(random() * (longestMs - step)));
      }
      await clock.advance(step);
    }
    // Three members share three slots: each waits at most for the jobs before the begin, or for those of the others.
    expect(waits.mine).toBeLessThanOrEqual(2 * longestMs);
    expect(waits.others).toBeLessThanOrEqual(6 * longestMs);
    expect(served).toBeGreaterThan(30);
  });
});
