import { LimitedUses } from '../../../../src/features/budgets/limited-uses.js';
import { readMadeKeys } from '../../../../src/features/keys-api/records.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { keysListener } from '../../../../src/primary/access/keys-file.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import { KeyRing } from '../../../../src/worker/access/keys.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { CountedBudgets } from '../../../support/jobs/counted-budgets.js';

const digest = digestOf('another');

/** Lines of a keys file, by what a fault of the line must close. */
const lines = {
  ada: `ada:sha256:${digestOf('ada')}:group=physics`,
  bob: `bob:sha256:${digestOf('bob')}:previous=${digestOf('old bob')}/2030-01-01`,
  everybody: 'sso:*:scopes=ask',
  staff: 'sso:group:staff:weight=2',
  eve: 'sso:eve:scopes=ask+chat',
  physics: '@physics tokens=5/day',
  service: '@* tokens=100/day',
} as const;
type Subject = keyof typeof lines;
const subjects = Object.keys(lines) as Subject[];

/** Faults of a line that leave the name readable. */
const faults: readonly (readonly [fault: string, change: (line: string) => string])[] = [
  ['an unknown option', (line) => `${line},colour=red`],
  ['an option that is given twice', (line) => `${line},${line.split(/[:\s,]/).at(-1)}`],
  ['a value that is cut off', (line) => line.replace(/(.*)=.*$/, '$1=')],
  ['a blank before it', (line) => ` ${line.replace(/\w+=.*/, 'scopes=')}`],
  ['a colon at its end', (line) => `${line}:`],
  ['a wrong separator', (line) => line.replace(/[:\s](?=\w+=)/, ';')],
];

/** Faults of the lines for keys alone. */
const keyFaults: typeof faults = [
  ['a short digest', (line) => line.replace(/[0-9a-f]{64}/, 'abc')],
  ['no digest', (line) => line.replace(/:sha256.*/, '')],
  ['an expiry that is no day', (line) => `${line},expires=2026-02-31`],
];

const clock = new FakeClock();

function isValid(rights: { readonly expiresAt: number | null } | null): boolean {
  return rights !== null && (rights.expiresAt ?? Number.POSITIVE_INFINITY) > clock.now();
}

async function createService(reportsCosts = true) {
  const content = { apiKeys: [], namedKeys: [], personLines: [], groupLines: [] };
  const clients = new Clients({ ...content, needsKey: true, rateMaxRequests: 0, rateWindowMs: 1000 }, clock);
  const ring = new KeyRing();
  const budgets = new CountedBudgets(clock, (client, groups) => new LimitedUses(clients).of(client, groups));
  const fileFaults = new FileFaults();
  const onChange = async () => ring.replace(JSON.parse(JSON.stringify(clients.workerKeys)));
  const listener = keysListener({
    clients,
    keyOptions,
    onChange,
    fileFaults,
    log: new LogBook(),
    reportsCosts,
    findWarnings: () => [],
  });
  const hasBudget = (client: ClientText) => {
    try {
      budgets.checkBudget({ client });
      return true;
    } catch {
      return false;
    }
  };
  const tests: Readonly<Record<Subject, () => boolean>> = {
    ada: () => isValid(ring.find('ada')),
    bob: () => isValid(ring.find('bob')) && isValid(ring.find('old bob')),
    everybody: () => isValid(ring.rightsOf({ name: 'zoe', groups: [] })),
    staff: () => isValid(ring.rightsOf({ name: 'tom', groups: ['staff'] })),
    eve: () => isValid(ring.rightsOf({ name: 'eve', groups: ['staff'] })),
    physics: () => hasBudget('key ada') || !tests.service() || !tests.ada(),
    service: () => hasBudget('key bob'),
  };
  await listener.read(Object.values(lines).join('\n'));
  const refused = () => subjects.filter((subject) => !tests[subject]());
  return { listener, refused, ring, fileFaults, clients };
}

const cases = subjects.flatMap((subject) =>
  [...faults, ...(subject === 'ada' || subject === 'bob' ? keyFaults : [])].map(
    ([fault, change]) => [subject, fault, change] as const,
  ),
);

describe('After a change of the keys file', () => {
  it.each(cases)(
    'the line of %s with %s is refused, no other line is lost, and the fault is visible',
    async (...each) => {
      const [subject, , change] = each;
      const { listener, refused, fileFaults } = await createService();
      expect(refused()).toEqual([]);
      const changed = { ...lines, [subject]: change(lines[subject]) };
      await listener.read(Object.values(changed).join('\n'));
      expect([refused(), fileFaults.counts.keys]).toEqual([[subject], 1]);
      await listener.read(Object.values(lines).join('\n'));
      expect([refused(), fileFaults.counts.keys]).toEqual([[], 0]);
    },
  );

  it.each(cases)('a removed key is refused, although the line of %s has %s', async (...each) => {
    const [subject, , change] = each;
    const { listener, ring } = await createService();
    await listener.read([lines.ada, `max:sha256:${digest}`].join('\n'));
    expect(ring.find('another')).not.toBeNull();
    await listener.read([lines.ada, change(lines[subject])].join('\n'));
    expect(ring.find('another')).toBeNull();
  });

  it.each([
    ['@physics cost=200/month', 'physics'],
    ['@* cost=5/day', 'service'],
    ['sso:eve:cost=5/day', 'eve'],
    [`bob:sha256:${digestOf('bob')}:cost=5/day`, 'bob'],
  ] as const)('a removed key is refused, although no model CLI reports the costs for %s', async (line, subject) => {
    const { listener, ring, refused, fileFaults } = await createService(false);
    await listener.read([...Object.values(lines), `max:sha256:${digest}`].join('\n'));
    expect(ring.find('another')).not.toBeNull();
    await listener.read(Object.values({ ...lines, [subject]: line }).join('\n'));
    expect([ring.find('another'), refused(), fileFaults.counts.keys]).toEqual([null, [subject], 1]);
  });

  it.each([
    ['sso:Eve:scopes=', 'eve'],
    ['sso:group:staff,guests', 'staff'],
    ['sso: *', 'everybody'],
    ['@physics,guests tokens=5/day', 'physics'],
    ['@ * tokens=5/day', 'service'],
  ] as const)('everybody whom a line with an unreadable name may be about is refused: %s', async (line, subject) => {
    const { listener, refused } = await createService();
    await listener.read(Object.values({ ...lines, [subject]: line }).join('\n'));
    expect(refused()).toEqual([subject]);
  });
});

describe('After a change of the keys made over HTTP', () => {
  const rowOf = (name: string) => ({
    ...{ name, client: `made ${name}~1` as const, digest: digestOf(name), owner: 'key root' },
    ...{ made_at: '2026-11-27T21:00:00.000Z', groups: ['physics'], options: { scopes: 'ask', rate: '5/60' } },
  });
  type Row = ReturnType<typeof rowOf>;
  const fields = Object.keys(rowOf('')) as (keyof Row)[];
  const values = [null, 7, '', 'a b', [], {}, ['x', 7], { colour: 'red' }, { scopes: '' }, { rate: 5 }];
  const damages: readonly (readonly [what: string, damage: (row: Row) => unknown])[] = [
    ...fields.flatMap((field) =>
      values
        .filter(
          (value) =>
            !(
              (field === 'groups' && Array.isArray(value) && value.length === 0) ||
              (field === 'options' && JSON.stringify(value) === '{}') ||
              (field === 'owner' && typeof value === 'string')
            ),
        )
        .map((value) => [`the ${field} ${JSON.stringify(value)}`, (row: Row) => ({ ...row, [field]: value })] as const),
    ),
    ...(['name', 'digest', 'owner', 'made_at', 'options'] as const).map(
      (field) => [`no ${field}`, (row: Row) => ({ ...row, [field]: undefined })] as const,
    ),
    ['an unknown field', (row) => ({ ...row, colour: 'red' })],
    ['a number in place of the record', () => 7],
    ['nothing in place of the record', () => null],
  ];

  it.each(damages)(
    'a record with %s is refused alone, a removed key too, and the fault is visible',
    async (_, damage) => {
      const names = ['first', 'second', 'third'];
      const { listener, clients, ring } = await createService();
      const shown = () => [...names, 'removed'].filter((name) => isValid(ring.find(name)));
      const read = (rows: readonly unknown[]) => {
        const keys = readMadeKeys(JSON.stringify({ version: 1, keys: rows }), keyOptions);
        clients.replaceAddedKeys(keys);
        ring.replace(JSON.parse(JSON.stringify(clients.workerKeys)));
        return keys.filter((key) => key.damage !== undefined).length;
      };
      const good = names.map(rowOf);
      expect([read([...good, rowOf('removed')]), shown()]).toEqual([0, [...names, 'removed']]);
      expect([read(good.with(1, damage(rowOf('second')) as Row)), shown()]).toEqual([1, ['first', 'third']]);
      expect([read(good), shown()]).toEqual([0, names]);
      await listener.read('');
      expect(shown()).toEqual(names);
    },
  );
});
