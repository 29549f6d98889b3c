import { once } from 'node:events';
import { chmod, readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { canBecomeOthers, sendAs, strangers } from '../../support/clients/other-users.js';
import { request } from '../../support/clients/raw-http.js';
import { isAlive, workersOf } from '../../support/processes/processes.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const most = 256;
const ask = { method: 'POST', path: '/ask', body: { prompt: 'hello' } };

let folder: TemporaryFolder;
let socketPath: string;
let service: Service;
beforeEach(async () => {
  folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  socketPath = join(folder.path, 'socket');
  service = await startService({ env: { ...twoWorkers, MODEL_API_SOCKET: socketPath } });
  await chmod(socketPath, 0o666);
});
afterEach(async () => {
  await service.stop();
  await folder[Symbol.asyncDispose]();
});

/** Opens this many connections of the current user, each with a stream that does not end. */
async function openStreams(count: number): Promise<{ sockets: Socket[]; statuses: (string | null)[] }> {
  const statuses: (string | null)[] = Array(count).fill(null);
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = connect(socketPath);
    sockets.push(socket);
    socket
      .on('error', () => {})
      .on('data', (bytes: Buffer) => {
        statuses[index] ??= bytes.toString('latin1', 9, 12);
      });
    await once(socket, 'connect');
    socket.write(
      request('POST /chat', ['Content-Type: application/json', 'Content-Length: 9', 'Expect: 100-continue']),
    );
  }
  await until(() => statuses.every((status) => status !== null), 'an answer on each', 60_000);
  return { sockets, statuses };
}

function countOf(statuses: readonly (string | null)[], wanted: string): number {
  return statuses.filter((status) => status === wanted).length;
}

/** Returns the Perl processes that the workers have started. */
async function helpers(): Promise<number[]> {
  const workers = await workersOf(service.pid);
  const children = await Promise.all(workers.map((pid) => readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')));
  const pids = children.flatMap((line) => line.trim().split(' ').filter(Boolean).map(Number));
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')));
  return pids.filter((_, at) => names[at]?.trim() === 'perl');
}

(canBecomeOthers ? describe : describe.skip)('One user with many connections on the Unix socket', () => {
  it('may open 256 of them over all workers, and other users can still connect', async () => {
    const { sockets, statuses } = await openStreams(most + 44);
    expect([countOf(statuses, '100'), countOf(statuses, '429')]).toEqual([most, 44]);
    const [other] = await sendAs(strangers.ada, service, [ask], { socketPath });
    expect(other?.status).toBe(200);
    expect((await service.get('/health')).status).toBe(200); // over TCP
    for (const socket of sockets.slice(0, 10)) socket.destroy();
    const again = await until(async () => {
      const more = await openStreams(10);
      sockets.push(...more.sockets);
      return countOf(more.statuses, '100') > 0;
    }, 'places of closed connections to be free');
    expect(again).toBe(true);
    for (const socket of sockets) socket.destroy();
  }, 90_000);

  it('regains its connections when a worker dies', async () => {
    const { sockets, statuses } = await openStreams(most);
    expect(countOf(statuses, '100')).toBe(most);
    for (const pid of await service.workers()) process.kill(pid, 'SIGKILL');
    await until(() => sockets.every(({ destroyed }) => destroyed), 'all connections to be gone');
    await until(async () => (await service.workers()).length === 2, 'the next workers');
    await until(async () => {
      const [answer] = await sendAs(0, service, [ask], { socketPath });
      return answer?.status === 200;
    }, 'a place');
    for (const socket of sockets) socket.destroy();
  }, 90_000);

  it('needs no process per connection, and is identified even after the lookup process was killed', async () => {
    const askAs = async (uid: number) =>
      (await sendAs(uid, service, Array(5).fill(ask), { socketPath })).at(-1)?.status;
    const { sockets } = await openStreams(60); // enough that both workers had some
    const before = await helpers();
    expect(before).toHaveLength(2);
    expect([await askAs(strangers.ada), await askAs(strangers.bob)]).toEqual([200, 200]);
    expect(await helpers()).toEqual(before);
    for (const pid of before) process.kill(pid, 'SIGKILL');
    expect(await askAs(strangers.ada)).toBe(200);
    const names = () =>
      service.logs
        .filter(({ event, path }) => event === 'http_request_completed' && path === '/ask')
        .map(({ client }) => client);
    await until(() => names().length >= 15, 'all records');
    expect(new Set(names())).toEqual(new Set(['user uid-64001', 'user uid-64002']));
    for (const socket of sockets) socket.destroy();
    const last = await helpers();
    await service.stop();
    await until(() => last.every((pid) => !isAlive(pid)), 'the processes to end with their workers');
  }, 90_000);
});
