import type { Period, UsageDelta, UsageStore } from '../../../../src/features/stores/contract/usage.js';
import { UsageJournal } from '../../../../src/features/usage/journal.js';
import { UsageLedger } from '../../../../src/features/usage/ledger.js';
import { noBill } from '../../../../src/primary/jobs/bill.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';
import { jobDone, jobRequest } from '../../../support/jobs/job-records.js';

const always: Period = { since: null, until: null };

/** Store of usage that fails on demand. */
class Batches implements UsageStore {
  readonly report = null;
  readonly given: (readonly UsageDelta[])[] = [];
  isBroken = false;
  kept: readonly UsageDelta[] = [];

  async *restoreUsage(): AsyncGenerator<UsageDelta> {
    yield* this.kept;
  }

  async addUsage(rows: readonly UsageDelta[]): Promise<void> {
    this.given.push(rows);
    if (this.isBroken) throw storeUnavailable();
  }
}

async function createUsage(kept: readonly UsageDelta[] = []) {
  const clock = new FakeClock();
  const ledger = new UsageLedger(clock);
  const journal = Object.assign(new Batches(), { kept });
  const usage = new UsageJournal(ledger, journal, clock);
  usage.awaitRestore();
  usage.startSaving();
  await usage.restoreUsage();
  const answer = () => ledger.jobEnded(jobRequest({ client: 'key alice' }), jobDone(), noBill);
  return { clock, ledger, journal, usage, answer };
}

describe('Stored usage', () => {
  it('is written to the journal each second, unless there is none', async () => {
    const { clock, journal, answer } = await createUsage();
    answer();
    answer();
    await clock.advance(3000);
    answer();
    await clock.advance(1000);
    expect(journal.given.map(([row]) => row?.jobs.ok)).toEqual([2, 1]);
  });

  it('is written again unchanged after a failure, followed by the usage since then', async () => {
    const { clock, journal, answer } = await createUsage();
    journal.isBroken = true;
    answer();
    await clock.advance(2000);
    answer();
    journal.isBroken = false;
    await clock.advance(2000);
    expect(journal.given.map(([row]) => row?.jobs.ok)).toEqual([1, 1, 1, 1]);
    expect(new Set(journal.given).size).toBe(2);
  });

  it('includes the usage of an earlier service', async () => {
    const first = await createUsage();
    first.answer();
    await first.usage.closeJournal();
    const second = await createUsage(first.journal.given.flat());
    second.answer();
    expect(second.ledger.report(null, always)).toMatchObject([{ client: 'alice', jobs: { ok: 2 } }]);
    await second.clock.advance(1000);
    expect(second.journal.given).toMatchObject([[{ jobs: { ok: 1 } }]]);
  });

  it('is written completely at the end', async () => {
    const { clock, journal, usage, answer } = await createUsage();
    answer();
    const added = usage.saveUsage();
    answer();
    await Promise.all([added, usage.closeJournal()]);
    expect(journal.given.map(([row]) => row?.jobs.ok)).toEqual([1, 1]);
    expect(clock.pending).toBe(0);
  });

  it('does not delay the end if the journal fails', async () => {
    const { journal, usage, answer } = await createUsage();
    journal.isBroken = true;
    answer();
    await usage.closeJournal();
    await settled();
    expect(journal.given).toHaveLength(1);
  });
});

it('The usage of a service whose store has not been read yet is not reported, and is added to the stored usage once', async () => {
  const { clock, ledger, journal, usage, answer } = await createUsage();
  answer();
  await usage.closeJournal();
  const [row] = journal.given[0] ?? [];
  if (row === undefined) throw new Error('nothing was added');
  const next = new UsageJournal(ledger, Object.assign(journal, { kept: [row] }), clock);
  next.awaitRestore();
  next.startSaving();
  expect(() => next.report(null, always)).toThrow(storeUnavailable().message);
  await next.restoreUsage();
  await next.restoreUsage();
  const [reported] = await next.report(null, always);
  expect(reported?.jobs.ok).toBe(2);
  await next.closeJournal();
});
