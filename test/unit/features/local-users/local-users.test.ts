import { Socket } from 'node:net';
import type { Request } from 'express';
import { LocalUsers } from '../../../../src/features/local-users/local-users.js';

interface Caller {
  readonly address?: string;
  readonly isProxy?: boolean;
}

const names: Readonly<Record<number, string>> = { 1000: 'ada', 1001: 'bob' };

function createUsers(localUsers: 'off' | 'identify' | 'require', allowedUsers: string[] = []) {
  let uid: number | null = 1000;
  const asked = { times: 0 };
  const uidOf = async () => {
    asked.times++;
    return uid;
  };
  const credentials = { uidOf: async () => null };
  const parts = { table: { uidOf }, credentials, names: { nameOf: async (id: number) => names[id] ?? `uid-${id}` } };
  const users = new LocalUsers({ localUsers, allowedUsers }, parts);
  const become = (next: number | null) => {
    uid = next;
  };
  return { users, asked, become };
}

function requestOn(socket: Socket, { address = '127.0.0.1', isProxy = false }: Caller = {}): Request {
  return { socket, ip: address, app: { get: () => () => isProxy } } as unknown as Request;
}

function connection(remoteAddress = '127.0.0.1'): Socket {
  const ends = { localAddress: '127.0.0.1', localPort: 5051, remoteAddress, remotePort: 40_000 };
  const fields = Object.entries(ends).map(([name, value]) => [name, { value }]);
  return Object.defineProperties(new Socket(), Object.fromEntries(fields));
}

describe('A caller without a key', () => {
  it('is identified by its user, looked up once per connection', async () => {
    const { users, asked, become } = createUsers('identify');
    const one = connection();
    const both = [users.admitCaller(requestOn(one)), users.admitCaller(requestOn(one))];
    expect(await Promise.all(both)).toEqual(['user ada', 'user ada']);
    become(1001);
    expect(await users.admitCaller(requestOn(one))).toBe('user ada');
    expect(await users.admitCaller(requestOn(connection()))).toBe('user bob');
    expect(asked.times).toBe(2);
  });

  it.each([
    ['user id if the user has no name', 'require', 1234, '127.0.0.1', 'user uid-1234'],
    ['address if the lookup finds no user', 'identify', null, '192.0.2.1', 'address 192.0.2.1'],
  ] as const)('is identified by its %s', async (_, setting, uid, address, client) => {
    const { users, become } = createUsers(setting);
    become(uid);
    expect(await users.admitCaller(requestOn(connection(address), { address }))).toBe(client);
  });

  it('is identified by its address if the lookup is disabled', async () => {
    const { users, asked } = createUsers('off');
    expect(await users.admitCaller(requestOn(connection()))).toBe('address 127.0.0.1');
    expect(asked.times).toBe(0);
  });

  it('is identified by the header of a trusted proxy, never by the user of the proxy', async () => {
    const { users, asked } = createUsers('identify');
    const proxied = requestOn(connection(), { address: '192.0.2.1', isProxy: true });
    expect(await users.admitCaller(proxied)).toBe('address 192.0.2.1');
    const local = requestOn(connection(), { isProxy: true });
    expect(await createUsers('identify').users.admitCaller(local)).toBe('address 127.0.0.1');
    expect(asked.times).toBe(0);
    await expect(createUsers('require').users.admitCaller(proxied)).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('is refused if a user is required and not found', async () => {
    const { users, become } = createUsers('require');
    become(null);
    await expect(users.admitCaller(requestOn(connection()))).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('MODEL_API_LOCAL_USERS is require'),
    });
    expect(await users.name(requestOn(connection()))).toBe('address 127.0.0.1');
  });

  it.each<[string[], number | null, boolean]>([
    [['ada'], 1000, true],
    [['1000'], 1000, true],
    [['bob', '7'], 1000, false],
    [['100'], 1000, false],
    [['uid-1234'], 1234, true],
    [['ada'], null, false],
  ])('is checked against the allowed users: %j, %p: %p', async (allowed, uid, isAllowed) => {
    const { users, become } = createUsers('identify', allowed);
    become(uid);
    const admitted = users.admitCaller(requestOn(connection()));
    if (isAllowed) await expect(admitted).resolves.toMatch(/^user /);
    else {
      const message = expect.stringMatching(/is not in MODEL_API_ALLOWED_USERS$/);
      await expect(admitted).rejects.toMatchObject({ code: 'forbidden', message });
    }
  });
});
