import { Clients } from '../../../../src/primary/access/clients.js';
import { keysListener } from '../../../../src/primary/access/keys-file.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { LogBook } from '../../../support/basics/log-book.js';

const uncapped = { rateMaxRequests: 0, rateWindowMs: 1000 };
const lineOf = (name: string) => `${name}:sha256:${digestOf(name)}\n`;

function createListener(reportsCost = true) {
  const clients = new Clients({
    ...uncapped,
    apiKeys: [],
    namedKeys: readKeysFile(lineOf('ada')).keys,
    sharedBudgets: [],
    madeKeys: [],
    personLines: [],
    needsKey: true,
  });
  const log = new LogBook();
  const told: (string[] | undefined)[] = [];
  const names = () => clients.workerKeys.keys?.map(({ name }) => name);
  const listener = keysListener(clients, () => told.push(names()), log, reportsCost);
  return { listener, log, told, names };
}

describe('The reload of the keys file', () => {
  it('activates its keys and logs it', async () => {
    const { listener, log, told } = createListener();
    await listener.read(lineOf('ada') + lineOf('bob'));
    await listener.read('');
    expect(told).toEqual([['ada', 'bob'], []]);
    expect(log.entries.map(({ event, fields }) => [event, fields])).toEqual([
      ['keys_loaded', { keys: 2 }],
      ['keys_loaded', { keys: 0 }],
    ]);
  });

  it('activates its lines for people, and does not repeat that for the same ones', async () => {
    const { listener, log, told } = createListener();
    for (const weight of [2, 2, 3]) await listener.read(`${lineOf('ada')}sso:*:weight=${weight}\n`);
    expect(told).toHaveLength(2);
    expect(log.entries.map(({ event }) => event)).toEqual(['keys_loaded', 'keys_loaded']);
  });

  it('rejects a budget in dollars if the model CLI reports no cost', async () => {
    const { listener, log, names } = createListener(false);
    await listener.read(`${lineOf('bob').trim()}:cost=5/day\n`);
    expect(log.entries.map(({ event }) => event)).toEqual(['keys_rejected']);
    expect(JSON.stringify(log.entries)).toContain('the key bob has the option cost');
    expect(names()).toEqual(['ada']);
    await listener.read(`${lineOf('bob').trim()}:tokens=5/day\n`);
    expect(names()).toEqual(['bob']);
  });

  it('activates shared budgets, also if no key has changed', async () => {
    const { listener, log } = createListener();
    await listener.read(`@* tokens=5/day\n${lineOf('ada')}`);
    await listener.read(`@* tokens=5/day\n${lineOf('ada')}`);
    expect(log.events).toEqual(['keys_loaded']);
    const { listener: withoutCost, log: other } = createListener(false);
    await withoutCost.read(`@biology cost=5/day\n${lineOf('ada')}`);
    expect(JSON.stringify(other.entries)).toContain('the line @biology has the option cost');
  });

  it('logs nothing if nothing has changed', async () => {
    const { listener, log, told } = createListener();
    await listener.read(`# a comment\n${lineOf('ada')}`);
    expect([told, log.entries]).toEqual([[], []]);
  });

  it('leaves the keys unchanged if the file is invalid, and logs the reason', async () => {
    const { listener, log, told, names } = createListener();
    await listener.read(`${lineOf('bob')}joe\nmax\n`);
    listener.unreadable(new Error('EACCES: permission denied'));
    expect([names(), told]).toEqual([['ada'], []]);
    expect(log.entries.map(({ level, event, fields }) => [level, event, fields.error])).toEqual([
      ['error', 'keys_rejected', 'line 2: must begin with name:sha256:; line 3: must begin with name:sha256:'],
      ['error', 'keys_rejected', 'EACCES: permission denied'],
    ]);
  });

  it('logs that the file is valid again, even with the same keys as before', async () => {
    const { listener, log } = createListener();
    await listener.read('joe');
    await listener.read(lineOf('ada'));
    expect(log.events).toEqual(['keys_rejected', 'keys_loaded']);
  });

  it('does not block the event loop while it reads many keys', async () => {
    const { listener, told } = createListener();
    let turns = 0;
    const count = () => {
      turns++;
      if (told.length === 0) setImmediate(count);
    };
    setImmediate(count);
    await listener.read(Array.from({ length: 4000 }, (_, index) => lineOf(`key${index}`)).join(''));
    expect(told[0]).toHaveLength(4000);
    expect(turns).toBeGreaterThan(10);
  });
});
