import type { UsageDelta } from '../../../../src/features/stores/contract/usage.js';
import { noBill } from '../../../../src/primary/jobs/bill.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobDone, jobRequest } from '../../../support/jobs/job-records.js';
import { UsageInMemory, usagePart } from '../../../support/jobs/usage-part.js';

const period = { since: '2026-01-01', until: null, groups: ['client' as const] };
const always = { since: null, until: null };

describe('The usage', () => {
  it.each<[scopes: ('admin' | 'ask' | 'chat')[] | null, client: ClientText | null]>([
    [['admin'], null],
    [['ask', 'chat'], 'user bob'],
    [['ask', 'chat'], 'key ada/x'],
    [null, 'user bob'],
  ])('contains all clients for an admin, else only the one that asks (scopes: %p, %p)', async (scopes, client) => {
    const usage = usagePart(new FakeClock(), { limitUsesOf: (asking) => [{ client: String(asking) } as never] });
    for (const each of ['user bob', 'key ada/x'] as const) usage.countRefusal(each);
    const { text } = await usage.handlers.usage({ client: client ?? 'user bob', scopes, ...period });
    const report = JSON.parse(text) as { usage: { client: string }[] };
    expect(report).toMatchObject({ caller: { scopes }, budgets: [{ client: String(client) }] });
    const names = client === null ? ['ada/x', 'bob'] : [client.slice(client.indexOf(' ') + 1)];
    expect(report.usage.map((row) => row.client)).toEqual(names);
  });

  it('counts a job for its client, in the period of limits, and under each added name once', async () => {
    const usage = usagePart(new FakeClock());
    const seen: unknown[] = [];
    usage.countAlso((_, models) => {
      seen.push(models);
      return ['key ada/%opus', 'key ada/%opus'];
    });
    usage.countAlso(() => ['key ada/%opus']);
    const bill = { ...noBill, requested: 'opus', outputTokens: 2 };
    usage.job.jobEnded(jobRequest({ client: 'key ada' }), jobDone({ model: 'claude-opus-9' }), bill);
    expect(seen).toEqual([['opus', 'claude-opus-9']]);
    expect(usage.recent.spentIn('day', ['key ada/%opus']).tokens).toBe(2);
    expect(usage.recent.spentIn('day', null).tokens).toBe(2);
    expect(await usage.report(null, always)).toMatchObject([{ client: 'ada', jobs: { ok: 1 } }]);
    expect(usage.answeringModel('opus')).toBe('claude-opus-9');
  });

  it('counts a job also while an added name cannot be found', async () => {
    const faults: unknown[] = [];
    const usage = usagePart(new FakeClock(), { onDefect: (fault) => faults.push(fault) });
    const fault = new Error('no such budget');
    usage.countAlso(() => {
      throw fault;
    });
    usage.countAlso(() => ['key ada/%opus']);
    usage.job.jobEnded(jobRequest({ client: 'key ada' }), jobDone(), { ...noBill, outputTokens: 2 });
    expect(faults).toEqual([fault]);
    expect(usage.recent.spentIn('day', ['key ada', 'key ada/%opus']).tokens).toBe(4);
    expect(await usage.report(null, always)).toMatchObject([{ client: 'ada', jobs: { ok: 1 } }]);
  });

  it('of a service with a store waits for that of the earlier service, and counts meanwhile', async () => {
    const store = new UsageInMemory();
    const first = usagePart(new FakeClock(), { usage: store });
    await first.restored();
    first.countRefusal('key ada');
    await first.stop();
    const clock = new FakeClock();
    const second = usagePart(clock, { usage: store });
    second.countRefusal('key ada');
    await expect(second.report(null, always)).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(second.clientsWith('key ada')).rejects.toMatchObject({ code: 'store_unavailable' });
    second.start();
    await second.restored();
    await clock.advance(1000);
    expect(await second.report(null, always)).toMatchObject([{ client: 'ada', refused: 2 }]);
    expect(store.rows).toHaveLength(2);
  });

  it('of a client is written before it is removed, so that nothing of it is written later', async () => {
    const done: string[] = [];
    class Recording extends UsageInMemory {
      override async addUsage(rows: readonly UsageDelta[]): Promise<void> {
        done.push('add');
        await super.addUsage(rows);
      }
    }
    const usage = usagePart(new FakeClock(), { usage: new Recording() });
    await usage.restored();
    for (const client of ['key ada', 'key ada/x', 'key bob'] as const) usage.countRefusal(client);
    expect(await usage.clientsWith('key ada')).toEqual(['key ada', 'key ada/x']);
    expect(await usage.purgeClient('key ada')).toEqual({ usage: 1 });
    expect(await usage.report(null, always)).toMatchObject([{ client: 'ada/x' }, { client: 'bob' }]);
    await usage.flush();
    expect(done).toEqual(['add']);
  });

  it('of a client is removed also while the store is unavailable', async () => {
    class Broken extends UsageInMemory {
      override addUsage(): Promise<void> {
        return Promise.reject(storeUnavailable());
      }
    }
    const usage = usagePart(new FakeClock(), { usage: new Broken() });
    await usage.restored();
    usage.countRefusal('key ada');
    expect(await usage.purgeClient('key ada')).toEqual({ usage: 1 });
  });
});
