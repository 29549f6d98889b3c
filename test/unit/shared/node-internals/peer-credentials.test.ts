import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../../../src/shared/clock.js';
import { PeerCredentials } from '../../../../src/shared/node-internals/peer-credentials.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';
import { isAlive } from '../../../support/processes/processes.js';

const me = process.getuid?.();

async function listen() {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'socket');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const clients: Socket[] = [];
  const accept = async () => {
    const client = connect(path);
    clients.push(client);
    const [accepted] = (await once(server, 'connection')) as [Socket];
    return { client, accepted };
  };
  const close = async () => {
    for (const client of clients) client.destroy();
    server.close();
    await once(server, 'close');
    await folder[Symbol.asyncDispose]();
  };
  return { accept, [Symbol.asyncDispose]: close };
}

/** Returns the Perl processes that this process has started. */
async function helpers(): Promise<number[]> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8');
  const pids = children.trim().split(' ').filter(Boolean).map(Number);
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')));
  return pids.filter((pid, at) => names[at]?.trim() === 'perl' && isAlive(pid));
}

describe('The credentials of the peer of a Unix socket', () => {
  afterEach(() => until(async () => (await helpers()).length === 0, 'the helper process to be gone'));

  it('are read from the kernel, and the connection stays usable', async () => {
    await using server = await listen();
    using credentials = new PeerCredentials(systemClock);
    const { client, accepted } = await server.accept();
    expect(await Promise.all([credentials.uidOf(accepted), credentials.uidOf(accepted)])).toEqual([me, me]);
    accepted.end('still here');
    expect(String((await once(client, 'data'))[0])).toBe('still here');
  });

  it('need one helper process for all connections, which does not retain any of them', async () => {
    await using server = await listen();
    using credentials = new PeerCredentials(systemClock);
    await credentials.uidOf((await server.accept()).accepted);
    const [helper, ...others] = await helpers();
    expect([helper, others]).toEqual([expect.any(Number), []]);
    const descriptors = () => readdir(`/proc/${helper}/fd`);
    const before = (await descriptors()).length;
    const all: Socket[] = [];
    for (let count = 0; count < 50; count++) all.push((await server.accept()).accepted);
    expect(await Promise.all(all.map((accepted) => credentials.uidOf(accepted)))).toEqual(Array(50).fill(me));
    expect([await helpers(), (await descriptors()).length]).toEqual([[helper], before]);
  });

  it('are found although the helper process was killed', async () => {
    await using server = await listen();
    using credentials = new PeerCredentials(systemClock);
    for (let round = 0; round < 3; round++) {
      const { accepted } = await server.accept();
      expect(await credentials.uidOf(accepted)).toBe(me);
      for (const pid of await helpers()) process.kill(pid, 'SIGKILL');
    }
    await until(async () => (await helpers()).length === 0, 'the last one to be gone');
  });

  it('are unknown if the connection is closed, and if there is no Perl', async () => {
    await using server = await listen();
    using credentials = new PeerCredentials(systemClock);
    const { client, accepted } = await server.accept();
    const closed = once(accepted.resume(), 'close');
    client.destroy();
    await closed;
    expect(await credentials.uidOf(accepted)).toBeNull();
    using without = new PeerCredentials(systemClock, 'no-such-program');
    const both = [await server.accept(), await server.accept()];
    for (const each of both) expect(await without.uidOf(each.accepted)).toBeNull();
  });
});
