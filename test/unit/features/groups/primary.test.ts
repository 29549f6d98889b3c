import { createGroups } from '../../../../src/features/groups/primary.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { Ticket } from '../../../../src/primary/jobs/ticket.js';
import { WaitingRoom } from '../../../../src/primary/jobs/waiting-room.js';
import { type ClientText, noClient } from '../../../../src/shared/client.js';
import { digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const keyLine = (name: string, group: string) => `${name}:sha256:${digestOf(name)}:group=${group}`;
const keyLines = [keyLine('ada', 'bio'), keyLine('bob', 'bio'), keyLine('eve', 'art'), keyLine('joe', 'none')];

function createRoom(...groupLines: string[]) {
  const clock = new FakeClock();
  const content = () => readKeysFile([...keyLines, ...groupLines].join('\n'), keyOptions);
  const { keys: namedKeys, groupLines: lines } = content();
  const settings = { apiKeys: [], namedKeys, groupLines: lines, personLines: [{ name: '*', ...plainOptions }] };
  const clients = new Clients({ ...settings, needsKey: true, rateMaxRequests: 0, rateWindowMs: 1 }, clock);
  const { job } = createGroups({ clients } as unknown as PrimaryCore);
  const room = new WaitingRoom({ maxActive: 3, maxWaiting: 500, maxWaitingBytes: 1e6, cliLimits: {} }, clock);
  clients.onChange = () => room.readRules();
  const granted: string[] = [];
  const enter = (client: ClientText, groups: string[] = []): Ticket => {
    const request = { client, groups } as unknown as JobRequest;
    const readRules = () => ({ gates: job?.gatesOf?.(request) ?? [], share: job?.shareOf?.(request) ?? null });
    const fields = { client, bytes: 1, cli: loginOf('claude'), lane: '', heldBy: () => null };
    const ticket = room.admit({ ...fields, readRules, ...readRules() });
    if (ticket.isWaiting) void ticket.granted(new AbortController().signal).then(() => granted.push(client));
    return ticket;
  };
  const change = (...changed: string[]) => {
    const { keys, groupLines: newLines, personLines } = readKeysFile([...keyLines, ...changed].join('\n'), keyOptions);
    clients.replaceNamedKeys({ keys, groupLines: newLines, personLines });
  };
  return { clock, clients, room, enter, granted, change };
}

const waiting = (tickets: Ticket[]) => tickets.map(({ isWaiting }) => isWaiting);

describe('A group with running=', () => {
  it('lets a job over its limit wait with its reason, while jobs of others pass', () => {
    const { enter } = createRoom('@bio running=1');
    const [first, second, other] = [enter('key ada'), enter('key bob'), enter('key eve')];
    expect([...waiting([first, second, other]), second.reason]).toEqual([false, true, false, 'group']);
    first[Symbol.dispose]();
    expect(second.isWaiting).toBe(false);
  });

  it('counts the jobs of its people and of the groups in it', () => {
    const { clients, enter } = createRoom('@institute running=2', '@bio in=institute', '@lab in=institute');
    clients.recordPerson('sso ann', ['lab']);
    const tickets = [enter('sso ann', ['lab', 'institute']), enter('key ada'), enter('key bob'), enter('key joe')];
    expect(waiting(tickets)).toEqual([false, false, true, false]);
  });

  it('gets a new limit for jobs that wait or run already', () => {
    const { enter, change } = createRoom('@bio tokens=5/day');
    const running = [enter('key ada'), enter('key bob')];
    change('@bio running=1');
    const next = enter('key ada');
    expect([waiting(running), next.isWaiting, next.reason]).toEqual([[false, false], true, 'group']);
    change('@bio running=3');
    expect(next.isWaiting).toBe(false);
  });

  it('applies its limit to jobs that were admitted before its line, of keys and people', () => {
    const { clients, enter, change } = createRoom();
    clients.recordPerson('sso ann', ['lab']);
    const running = [enter('key ada'), enter('sso ann', []), enter('key eve')];
    const behind = [enter('key bob'), enter('sso ann', [])];
    change('@bio running=1', '@lab running=1');
    expect(behind.map(({ reason }) => reason)).toEqual(['group', 'group']);
    running[2]?.[Symbol.dispose]();
    expect(waiting(behind)).toEqual([true, true]);
    running[0]?.[Symbol.dispose]();
    expect(waiting(behind)).toEqual([false, true]);
  });

  it('counts a job for the group that its key has now', () => {
    const { clients, enter, change } = createRoom('@bio running=1', '@art running=1');
    const [running, other, behind] = [enter('key ada'), enter('key eve'), enter('key bob')];
    const moved = keyLines.map((line) => line.replace('group=bio', 'group=none'));
    const content = readKeysFile([...moved, '@bio running=1', '@art running=1'].join('\n'), keyOptions);
    clients.replaceNamedKeys({ ...content });
    expect(behind.isWaiting).toBe(false);
    change('@bio running=1');
    const next = enter('key ada');
    expect([next.reason, waiting([running, other, behind])]).toEqual(['group', [false, false, false]]);
  });

  it('does not starve: its next job starts when it may, although others always wait', () => {
    const { enter, granted } = createRoom('@bio running=1');
    let open = [enter('key ada'), enter('key eve'), enter('key joe')];
    const mine = enter('key bob');
    for (let round = 0; round < 5; round++) open.push(enter('key eve'), enter('key joe'));
    expect(mine.reason).toBe('group');
    open[0]?.[Symbol.dispose]();
    expect([mine.isWaiting, granted]).toEqual([false, []]);
    open = [];
  });
});

describe('A group with share=', () => {
  /** Lets these clients always have jobs, and returns the jobs of each after some turns. */
  function run(turns: number, names: readonly ClientText[], room: ReturnType<typeof createRoom>) {
    const counts = new Map(names.map((name) => [name, 0]));
    const open: { client: ClientText; ticket: Ticket }[] = [];
    const submit = (client: ClientText) => void open.push({ client, ticket: room.enter(client) });
    for (let count = 0; count < 5; count++) for (const name of names) submit(name);
    for (let turn = 0; turn < turns; turn++) {
      const index = open.findIndex(({ ticket }) => !ticket.isWaiting);
      const [ended] = open.splice(index, 1);
      ended?.ticket[Symbol.dispose]();
      counts.set(ended?.client ?? noClient, (counts.get(ended?.client ?? noClient) ?? 0) + 1);
      submit(ended?.client ?? noClient);
    }
    return [...counts.values()].map((count) => Math.round((count / turns) * 100) / 100);
  }
  const names = ['key ada', 'key bob', 'key eve', 'key joe'] as const;

  it('counts as one client, which its members divide', () => {
    expect(run(1200, names, createRoom())).toEqual([0.25, 0.25, 0.25, 0.25]);
    expect(run(1200, names, createRoom('@bio share=1'))).toEqual([0.17, 0.17, 0.33, 0.33]);
    expect(run(1200, names, createRoom('@bio share=6'))).toEqual([0.38, 0.38, 0.13, 0.13]);
  });

  it('gives its share to the groups in it that have none, and none to those that have one', () => {
    const outer = ['@institute share=1', '@bio in=institute', '@none in=institute'];
    expect(run(1200, names, createRoom(...outer, '@art in=institute'))).toEqual([0.25, 0.25, 0.25, 0.25]);
    expect(run(1200, names, createRoom(...outer))).toEqual([0.17, 0.17, 0.5, 0.17]);
    expect(run(1200, names, createRoom(...outer, '@art in=institute share=2'))).toEqual([0.11, 0.11, 0.67, 0.11]);
  });

  it('lets all other clients divide the share of the line for everybody', () => {
    expect(run(1200, names, createRoom('@bio share=1', '@* share=2'))).toEqual([0.17, 0.17, 0.33, 0.33]);
  });

  it('gets another share, or none, for jobs that wait already', () => {
    const { enter, change } = createRoom();
    const running = (['key joe', 'key joe', 'key joe'] as const).map((name) => enter(name));
    const tickets = names.slice(0, 3).map((name) => enter(name));
    change('@bio share=1');
    const positions = () => tickets.map(({ position }) => position);
    expect(positions()).toEqual([2, 3, 1]);
    change();
    expect(positions()).toEqual([2, 3, 1]);
    for (const ticket of [...running, ...tickets]) ticket[Symbol.dispose]();
    expect(enter('key ada').isWaiting).toBe(false);
  });
});
