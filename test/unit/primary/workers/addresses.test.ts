import { fork } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { access, stat, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ollama } from '../../../../src/features/ollama/feature.js';
import { type Addresses, openAddresses } from '../../../../src/primary/workers/addresses.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { bindTcp, bindUnix } from '../../../../src/shared/node-internals/connections.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { workerProgram } from '../../../support/processes/workers-harness.js';

const anyPort = { MODEL_API_PORT: '0' };

function withUmask<T>(mask: number, make: () => T): T {
  const before = process.umask(mask);
  try {
    return make();
  } finally {
    process.umask(before);
  }
}

async function open(env: Record<string, string> = {}, passedFds: readonly number[] = []): Promise<Addresses> {
  return openAddresses(
    await loadConfig({ ...anyPort, ...env }, async () => '', undefined, [ollama]),
    passedFds,
    withUmask,
  );
}

/** Starts an unrelated server. Returns its port, too. */
async function occupy(): Promise<{ readonly server: Server; readonly port: string }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return { server, port: String(typeof address === 'object' && address?.port) };
}

/** Starts a process that inherits the address and answers with its process ID. */
async function serve(fd: number) {
  const worker = fork(workerProgram('serves'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'ignore', fd] });
  await once(worker, 'message');
  return worker;
}

async function failureOf(opening: Promise<Addresses>): Promise<unknown> {
  return opening.then(
    () => null,
    (error: unknown) => error,
  );
}

describe('The addresses of the service', () => {
  it('are host and port, with the port that the system chose if none is named', async () => {
    const addresses = await open();
    expect(addresses.main).toEqual({ host: '127.0.0.1', port: expect.any(Number) });
    expect(addresses.main.port).toBeGreaterThan(1024);
    expect(addresses.fds).toEqual([expect.any(Number)]);
    addresses.close();
  });

  it('include a configured Unix socket, open to its user and group from the first moment', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'socket');
    const addresses = await open({ MODEL_API_SOCKET: path });
    expect(addresses.fds).toHaveLength(2);
    expect(addresses.main.port).toBeGreaterThan(0);
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    // No process listens yet, so nobody connected before the permissions were set.
    const [refusal] = await once(connect(path), 'error');
    expect(refusal).toMatchObject({ code: 'ECONNREFUSED' });
    const worker = await serve(addresses.fds[0] as number);
    expect(await text(connect(path))).toBe(String(worker.pid));
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    worker.kill('SIGKILL');
    addresses.close();
  });

  it.each([0, 0o077])(
    'include a Unix socket with these permissions from the first moment under the umask %d, which is unchanged',
    async (umask) => {
      await using folder = await temporaryFolder();
      const path = join(folder.path, 'socket');
      const config = await loadConfig({ ...anyPort, MODEL_API_SOCKET: path }, async () => '');
      const modes: number[] = [];
      const observed: typeof withUmask = (mask, make) =>
        withUmask(mask, () => {
          const made = make();
          modes.push(statSync(path).mode & 0o777);
          return made;
        });
      const opening = withUmask(umask, () => openAddresses(config, [], observed));
      (await opening).close();
      expect(modes).toEqual([0o660]);
      expect(withUmask(0o022, () => process.umask())).toBe(0o022);
    },
  );

  it('remain open while no worker listens, and a client that connects then is answered by the next one', async () => {
    const addresses = await open();
    const first = await serve(addresses.fds[0] as number);
    const ask = () => text(connect(addresses.main.port));
    expect(await ask()).toBe(String(first.pid));
    first.kill('SIGKILL');
    await once(first, 'exit');
    const answer = ask();
    const second = await serve(addresses.fds[0] as number);
    expect(await answer).toBe(String(second.pid));
    addresses.close();
    second.kill('SIGKILL');
    await once(second, 'exit');
    await expect(ask()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('are free for others once they are closed, and their file is removed', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'socket');
    const addresses = await open({ MODEL_API_SOCKET: path });
    addresses.close();
    addresses.close();
    await expect(access(path)).rejects.toMatchObject({ code: 'ENOENT' });
    const again = await open({ MODEL_API_SOCKET: path, MODEL_API_PORT: String(addresses.main.port) });
    expect(again.main).toEqual(addresses.main);
    again.close();
  });
});

describe('An address that cannot be opened', () => {
  it('is reported with the error, host and port', async () => {
    const { server, port } = await occupy();
    const failure = await failureOf(open({ MODEL_API_PORT: port }));
    expect(failure).toMatchObject({ code: 'EADDRINUSE', message: `bind EADDRINUSE 127.0.0.1:${port}` });
    server.close();
  });

  it('is reported with its path if it is a Unix socket', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'socket');
    await writeFile(path, '');
    const failure = await failureOf(open({ MODEL_API_SOCKET: path }));
    expect(failure).toMatchObject({ code: 'EADDRINUSE', message: `bind EADDRINUSE ${path}` });
  });

  it('leaves none of the others open', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'socket');
    const { server, port } = await occupy();
    expect(await failureOf(open({ MODEL_API_SOCKET: path, MODEL_API_PORT: port }))).not.toBeNull();
    await expect(access(path)).rejects.toMatchObject({ code: 'ENOENT' });
    server.close();
  });
});

// The descriptors of these sockets belong to the addresses. The handles that opened them are never closed here.
describe('sockets that systemd has passed', () => {
  it('stand for host and port', async () => {
    const [first, second] = [await bindTcp('127.0.0.1', 0), await bindTcp('127.0.0.1', 0)];
    const addresses = await open({}, [first.fd, second.fd]);
    expect([addresses.fds, addresses.main]).toEqual([[first.fd, second.fd], first.address]);
    addresses.close();
  });

  it('remain open for another attempt if another address cannot be used', async () => {
    const first = await bindTcp('127.0.0.1', 0);
    const { server, port } = await occupy();
    const failure = await failureOf(open({ MODEL_API_OLLAMA_PORT: port }, [first.fd]));
    expect(failure).toMatchObject({ code: 'EADDRINUSE' });
    server.close();
    await once(server, 'close');
    const addresses = await open({ MODEL_API_OLLAMA_PORT: port }, [first.fd]);
    expect([addresses.main, String(addresses.ports[0]?.address.port)]).toEqual([first.address, port]);
    addresses.close();
  });

  it('must be TCP sockets', async () => {
    await using folder = await temporaryFolder();
    const { fd } = bindUnix(join(folder.path, 'socket'));
    const failure = await failureOf(open({}, [fd]));
    expect(failure).toMatchObject({ message: 'a socket passed by systemd is not a TCP socket' });
  });

  it('require an API key if other machines can reach them', async () => {
    const message = 'the socket passed by systemd can be reached from other machines at 0.0.0.0: set an API key';
    expect(await failureOf(open({}, [(await bindTcp('0.0.0.0', 0)).fd]))).toMatchObject({ message });
    const key = { MODEL_API_KEY: 'a-long-secret-key' };
    const addresses = await open(key, [(await bindTcp('0.0.0.0', 0)).fd]);
    expect(addresses.main.host).toBe('0.0.0.0');
    addresses.close();
  });
});
