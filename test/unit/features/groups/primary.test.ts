import { createGroups } from '../../../../src/features/groups/primary.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { Ticket } from '../../../../src/primary/jobs/ticket.js';
import { WaitingRoom } from '../../../../src/primary/jobs/waiting-room.js';
import { digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import type { JobRequest } from '../../../../src/shared/job.js';
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
  const room = new WaitingRoom({ maxActive: 3, maxWaiting: 50, maxWaitingBytes: 1e6, cliLimits: {} }, clock);
  const granted: string[] = [];
  const enter = (client: string, groups: string[] = []): Ticket => {
    const gates = job?.gatesOf?.({ client, groups } as unknown as JobRequest) ?? [];
    const ticket = room.admit({ client, bytes: 1, cli: 'claude', lane: '', gates, heldBy: () => null });
    if (ticket.isWaiting) void ticket.granted(new AbortController().signal).then(() => granted.push(client));
    return ticket;
  };
  const change = (...changed: string[]) => {
    const { keys, groupLines: newLines, personLines } = readKeysFile([...keyLines, ...changed].join('\n'), keyOptions);
    clients.replaceNamedKeys({ keys, groupLines: newLines, personLines });
    room.next();
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
