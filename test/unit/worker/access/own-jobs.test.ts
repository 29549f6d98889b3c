import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../../../src/shared/clock.js';
import { PeerCredentials } from '../../../../src/shared/node-internals/peer-credentials.js';
import { cookieName, cookieOf, instanceOfProcess } from '../../../../src/shared/process/proc.js';
import { ProcessScanner } from '../../../../src/shared/process/scanner.js';
import { OwnJobs } from '../../../../src/worker/access/own-jobs.js';
import { SocketTable } from '../../../../src/worker/access/user-tables.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const connects = 'require("node:net").connect(JSON.parse(process.argv[1]))';

/** Returns the accepted end of a connection from a program with this environment; with `path`, over a Unix socket. */
async function connectionOf(env: Readonly<Record<string, string>>, path?: string) {
  const accepted: Socket[] = [];
  // Another program on this machine may connect by mistake to a port that was free a moment ago.
  const server = createServer((socket) => accepted.push(socket));
  server.listen(path === undefined ? { port: 0, host: '127.0.0.1' } : { path });
  await once(server, 'listening');
  const { port } = Object(server.address());
  const address = JSON.stringify(path === undefined ? { port, host: '127.0.0.1' } : { path });
  const child = spawn(process.execPath, ['-e', connects, address], { env: { PATH: process.env.PATH, ...env } });
  const exited = once(child, 'exit');
  const [[socket]] = (await Promise.all([once(server, 'connection'), once(child, 'spawn')])) as [[Socket], unknown];
  return {
    socket,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      const closed = once(server.close(), 'close');
      for (const each of accepted) each.destroy();
      await Promise.all([exited, closed]);
    },
  };
}

const noCredentials = { uidOf: async () => null, pidOf: async () => null };

async function guard() {
  const instance = await instanceOfProcess(process.pid);
  const table = new SocketTable();
  const searched: unknown[] = [];
  const scanner = new ProcessScanner(systemClock);
  const find: ProcessScanner['find'] = (fits) => {
    searched.push(fits);
    return scanner.find(fits);
  };
  return { instance, searched, find, ownJobs: new OwnJobs(instance, table, { find }, noCredentials) };
}

describe('A connection', () => {
  it('from a job of this service is recognised, and looked up once', async () => {
    const { instance, ownJobs, searched } = await guard();
    await using made = await connectionOf({ [cookieName]: cookieOf(instance, 7) });
    expect(await ownJobs.isOf(made.socket)).toBe(true);
    expect(await ownJobs.isOf(made.socket)).toBe(true);
    expect(searched).toHaveLength(1);
  });

  it.each([
    ['no job', {}],
    ['a job of another service', { [cookieName]: '1.2.3:4' }],
  ])('from %s is not recognised', async (_, env) => {
    const { ownJobs } = await guard();
    await using made = await connectionOf(env);
    expect(await ownJobs.isOf(made.socket)).toBe(false);
  });

  it('through a Unix socket is recognised by the process that opened it', async () => {
    await using folder = await temporaryFolder();
    using credentials = new PeerCredentials(systemClock);
    const { instance, find } = await guard();
    const ownJobs = new OwnJobs(instance, new SocketTable(), { find }, credentials);
    await using own = await connectionOf({ [cookieName]: cookieOf(instance, 7) }, join(folder.path, 'own'));
    await using other = await connectionOf({}, join(folder.path, 'other'));
    expect([await ownJobs.isOf(own.socket), await ownJobs.isOf(other.socket)]).toEqual([true, false]);
  });

  it('of another user is not looked up', async () => {
    const { instance, searched, find } = await guard();
    const table = { ownerOf: async () => ({ uid: 4711, inode: '1' }) };
    await using made = await connectionOf({ [cookieName]: cookieOf(instance, 7) });
    expect(await new OwnJobs(instance, table, { find }, noCredentials).isOf(made.socket)).toBe(false);
    expect(searched).toEqual([]);
  });

  it('that is closed or cannot be looked up is not recognised', async () => {
    const { instance, ownJobs } = await guard();
    expect(await ownJobs.isOf(connect({ path: '/nowhere/there' }).on('error', () => {}))).toBe(false);
    const table = { ownerOf: async () => Promise.reject(new Error('no descriptor is left')) };
    const failing = new OwnJobs(instance, table, new ProcessScanner(systemClock), noCredentials);
    await using made = await connectionOf({ [cookieName]: cookieOf(instance, 7) });
    expect(await failing.isOf(made.socket)).toBe(false);
  });
});
