import { createStoring } from '../../../../src/features/storing/primary.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest, plainForm } from '../../../support/jobs/job-records.js';

const off = { featureOptions: { store: 'off' } };
const on = { featureOptions: {} };

/** Creates the part for clients with these options. `isShared`: whether several hosts share the store. */
function partWith(options: Readonly<Record<string, object>>, groups: readonly object[] = [], isShared = false) {
  const clients = { optionsOf: (client: ClientText) => options[client] ?? on, groupsOf: () => groups };
  const store = { isShared };
  return createStoring({ clients, store } as unknown as PrimaryCore);
}

describe('A client', () => {
  it.each([
    ['without the option', {}, [on], true],
    ['with the option', { 'sso ada/laptop~1': off }, [], false],
    ['whose person has it', { 'sso ada': off }, [], false],
    ['whose group has it', {}, [on, off], false],
    ['whose group has a line with a fault', {}, [{ ...on, isClosed: true }], false],
  ])('%s is stored or not, and its background jobs are refused if not', (_, options, groups, mayStore) => {
    const part = partWith(options, groups);
    const request = jobRequest({ client: 'sso ada/laptop~1' });
    expect(part.mayStore?.(request.client)).toBe(mayStore);
    const admit = () => part.job?.admit?.(request, plainForm);
    if (mayStore) admit();
    else expect(admit).toThrow(expect.objectContaining({ code: 'forbidden', reason: 'storing_is_off' }));
  });

  it('may chat if its conversations can stay in memory', () => {
    const chat = jobRequest({ client: 'key ada', operation: 'chat' });
    const check = (isShared: boolean) => partWith({ 'key ada': off }, [], isShared).job?.check?.(chat);
    check(false);
    expect(() => check(true)).toThrow(expect.objectContaining({ reason: 'storing_is_off' }));
    partWith({}, [], true).job?.check?.(chat);
  });

  it('may not store with an own key if a present group of its person prevents it', () => {
    const groupLines = [{ name: 'lab', featureOptions: { store: 'off' } }];
    const settings = { apiKeys: [], namedKeys: [], groupLines, personLines: [], needsKey: true };
    const clients = new Clients({ ...settings, rateMaxRequests: 0, rateWindowMs: 1000 }, new FakeClock());
    const key = {
      ...plainOptions,
      name: 'laptop',
      digest: digestOf('laptop'),
      client: 'sso ada/laptop~1' as const,
      groups: [],
    };
    clients.replaceAddedKeys([key]); // made before the group had a line
    clients.recordPerson('sso ada', ['lab']);
    const part = createStoring({ clients, store: { isShared: false } } as unknown as PrimaryCore);
    expect((['sso ada', key.client, 'sso eve'] as const).map((client) => part.mayStore?.(client))).toEqual([
      false,
      false,
      true,
    ]);
  });
});
