import { Clients } from '../../../../src/primary/access/clients.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { keysListener } from '../../../../src/primary/access/keys-file.js';
import { digestOf, isRefused } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { LogBook } from '../../../support/basics/log-book.js';

const clock = new FakeClock();

const uncapped = { rateMaxRequests: 0, rateWindowMs: 1000 };
const lineOf = (name: string) => `${name}:sha256:${digestOf(name)}\n`;

function createListener(reportsCosts = true) {
  const clients = new Clients(
    {
      ...uncapped,
      apiKeys: [],
      namedKeys: readKeysFile(lineOf('ada'), keyOptions).keys,
      groupLines: [],
      personLines: [],
      needsKey: true,
    },
    clock,
  );
  const log = new LogBook();
  const told: (string[] | undefined)[] = [];
  const names = () => clients.workerKeys.keys?.filter((key) => !isRefused(key)).map(({ name }) => name);
  const fileFaults = new FileFaults();
  const onChange = async () => void told.push(names());
  const listener = keysListener({
    clients,
    keyOptions,
    onChange,
    fileFaults,
    log,
    reportsCosts,
    findWarnings: () => [],
  });
  return { listener, log, told, names, fileFaults };
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

  it('warns of a group without a budget, each time that the lines change', async () => {
    const { listener, log } = createListener();
    const lines = `${lineOf('ada').trim()}:group=biolgy\n@biology tokens=5/day\n`;
    for (const text of [lines, lines, `${lines}${lineOf('bob')}`]) await listener.read(text);
    const warning = 'MODEL_API_KEYS_FILE: the group biolgy of ada has no budget: did you mean biology?';
    const warnings = log.entries.filter(({ event }) => event === 'config_warning');
    expect(warnings.map(({ fields }) => fields)).toEqual([{ warning }, { warning }]);
  });

  it('says which version of the file is in use, as soon as the workers have its keys', async () => {
    const { listener, fileFaults } = createListener();
    await listener.read(lineOf('bob'), 1000);
    expect(fileFaults.files).toEqual([{ name: 'keys_file', modified_at: '1970-01-01T00:00:01.000Z', faults: 0 }]);
    await listener.read(`${lineOf('bob')}joe`, 2000);
    listener.unreadable(new Error('no right'));
    expect(fileFaults.files).toEqual([{ name: 'keys_file', modified_at: '1970-01-01T00:00:02.000Z', faults: 1 }]);
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
    expect(log.entries.map(({ event }) => event)).toEqual(['keys_rejected', 'keys_loaded']);
    expect(JSON.stringify(log.entries)).toContain('the key bob has the option cost');
    expect(names()).toEqual([]);
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

  it('refuses a line with a fault and applies the others, and logs the reason once', async () => {
    const { listener, log, names, fileFaults } = createListener();
    expect(await listener.read(`${lineOf('bob')}joe\nmax\n`)).toBe(false);
    expect(await listener.read(`${lineOf('bob')}joe\nmax\n`)).toBe(false);
    expect([names(), fileFaults.counts.keys]).toEqual([['bob'], 2]);
    expect(log.entries.map(({ level, event, fields }) => [level, event, fields.error ?? fields.keys])).toEqual([
      ['error', 'keys_rejected', 'line 2: must begin with name:sha256:; line 3: must begin with name:sha256:'],
      ['info', 'keys_loaded', 1],
    ]);
    expect(await listener.read(lineOf('bob'))).toBe(true);
    expect([log.events.at(-1), fileFaults.counts.keys]).toEqual(['keys_loaded', 0]);
  });

  it('leaves the keys unchanged if the file is unreadable, and logs the reason once', async () => {
    const { listener, log, told, names, fileFaults } = createListener();
    listener.unreadable(new Error('EACCES: permission denied'));
    listener.unreadable(new Error('EACCES: permission denied'));
    expect([names(), told, fileFaults.counts.keys]).toEqual([['ada'], [], 1]);
    expect(log.entries.map(({ event, fields }) => [event, fields.error])).toEqual([
      ['keys_rejected', 'EACCES: permission denied'],
    ]);
  });

  it('logs that the file is valid again, even with the same keys as before', async () => {
    const { listener, log } = createListener();
    await listener.read(`${lineOf('ada')}joe`);
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
