import { LimitedUses } from '../../../../src/features/budgets/limited-uses.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import { type ApiKey, digestOf, type GroupLine, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { budgetOptions } from '../../../support/jobs/counted-budgets.js';

const clock = new FakeClock();

function keyOf(name: string, options: Partial<ApiKey> = {}): ApiKey {
  return { name, digest: digestOf(name), ...plainOptions, ...options };
}

const cap = { rateMaxRequests: 9, rateWindowMs: 60_000 };
const nothing = { apiKeys: [], namedKeys: [], groupLines: [], madeKeys: [], personLines: [] };
const noLines = { keys: [], groupLines: [], personLines: [] };

function clientsWith(namedKeys: ApiKey[], groupLines: GroupLine[] = []): Clients {
  return new Clients({ ...cap, ...nothing, apiKeys: [keyOf('default')], namedKeys, groupLines, needsKey: true }, clock);
}

describe('The budgets of a client', () => {
  const tokens = { max: 5, period: 'day' } as const;
  const limits = { tokens, costUsd: null };
  const options = budgetOptions({ tokens });
  const biology = { ...options, name: 'biology' };
  const ofBiology = { ...limits, kind: 'group', name: '@biology', holders: ['key ada', 'key bob', 'group biology'] };
  const ofService = { ...limits, kind: 'service', name: '@*', holders: null };
  const keys = [
    keyOf('ada', { group: 'biology', ...options }),
    keyOf('bob', { group: 'biology' }),
    keyOf('eve', { group: 'art' }),
  ];

  it('are those of its key, of the group of its key and of the whole service', () => {
    const clients = clientsWith(keys, [biology, { ...options, name: '*' }]);
    const uses = new LimitedUses(clients);
    const ofAda = { ...limits, kind: 'key', name: 'ada', holders: ['key ada'] };
    expect(uses.of('key ada/x')).toEqual([ofAda, ofBiology, ofService]);
    expect(uses.of('key bob')).toEqual([ofBiology, ofService]);
    for (const client of ['key eve', 'key default', 'user ada', 'address ada'] as const) {
      expect(uses.of(client)).toEqual([ofService]);
    }
    expect(uses.all).toEqual([ofBiology, ofService, ofAda]);
  });

  it('change with the keys file', () => {
    const clients = clientsWith(keys);
    const uses = new LimitedUses(clients);
    expect(uses.of('key bob')).toEqual([]);
    clients.replaceNamedKeys({ ...noLines, keys, groupLines: [biology] });
    expect(uses.of('key bob')).toEqual([ofBiology]);
    clients.replaceNamedKeys({ ...noLines, groupLines: [biology] });
    expect([uses.of('key bob'), uses.all]).toEqual([[], [{ ...ofBiology, holders: ['group biology'] }]]);
  });

  it('of a person are those of the line that applies to it', () => {
    const tokens = { max: 5, period: 'day' as const };
    const clients = new Clients(
      {
        ...cap,
        ...nothing,
        personLines: [{ ...plainOptions, name: '*', ...budgetOptions({ tokens }) }],
        needsKey: true,
      },
      clock,
    );
    const uses = new LimitedUses(clients);
    const own = { name: 'ada', kind: 'sso', tokens, costUsd: null, holders: ['sso ada'] };
    expect(uses.of('sso ada')).toEqual([own]);
    expect(uses.of('user ada')).toEqual([]);
    expect(uses.all).toEqual([]);
    clients.recordPerson('sso ada', []);
    expect(uses.all).toEqual([own]);
  });
});
