import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type NetConnectOpts } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  type BoundSocket,
  bindTcp,
  bindUnix,
  inheritedSocket,
} from '../../../../src/shared/node-internals/connections.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const loopback = '127.0.0.1';
const moduleUnderTest = join(__dirname, '..', '..', '..', '..', 'src', 'shared', 'node-internals', 'connections.js');

/** Program that listens on descriptor 3, reports this, and answers each connection with its name. */
const listener = `
  const { listenOn } = require(${JSON.stringify(moduleUnderTest)});
  const server = require('node:net').createServer((socket) => socket.end(process.argv[1]));
  listenOn(server, 3).then(() => process.stdout.write('listening'));`;

/** Starts another process that inherits this address. Resolves when the process listens. */
async function listenElsewhere({ fd }: BoundSocket, name: string): Promise<AsyncDisposable> {
  const child: ChildProcess = spawn(process.execPath, ['-e', listener, name], { stdio: ['ignore', 'pipe', 2, fd] });
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Resolves with the text that a connection receives until it is closed, or the error code if it is refused. */
async function told(address: NetConnectOpts): Promise<string> {
  const socket = connect(address);
  try {
    return await text(socket);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}

function whereOf({ address }: BoundSocket): NetConnectOpts {
  if (address === null) throw new Error('it has no TCP address');
  return address;
}

describe('A TCP address', () => {
  it('is bound to the port that the system chose, and refuses connections until a process listens', async () => {
    const socket = await bindTcp(loopback, 0);
    expect(socket.address).toEqual({ host: loopback, port: expect.any(Number) });
    expect(socket.address?.port).toBeGreaterThan(0);
    expect(await told(whereOf(socket))).toBe('ECONNREFUSED');
    socket.close();
  });

  it('can be listened on in another process, and in several at once', async () => {
    const socket = await bindTcp(loopback, 0);
    await using _one = await listenElsewhere(socket, 'worker');
    await using _other = await listenElsewhere(socket, 'worker');
    expect(await Promise.all(Array.from({ length: 20 }, () => told(whereOf(socket))))).toEqual(
      Array(20).fill('worker'),
    );
    socket.close();
  });

  it('queues connections while no process listens, once one has listened', async () => {
    const socket = await bindTcp(loopback, 0);
    await (await listenElsewhere(socket, 'first'))[Symbol.asyncDispose]();
    const waiting = connect(whereOf(socket));
    await once(waiting, 'connect');
    await using _successor = await listenElsewhere(socket, 'second');
    expect(await text(waiting)).toBe('second');
    socket.close();
  });

  it('is free again after it is closed, which may happen twice', async () => {
    const socket = await bindTcp(loopback, 0);
    const { host, port } = whereOf(socket) as { host: string; port: number };
    socket.close();
    socket.close();
    (await bindTcp(host, port)).close();
  });

  it('can be given as a name', async () => {
    const socket = await bindTcp('localhost', 0);
    expect(socket.address?.host).toMatch(/^(127\.0\.0\.1|::1)$/);
    socket.close();
  });

  it('can be inherited by its descriptor', async () => {
    const socket = await bindTcp(loopback, 0);
    expect(inheritedSocket(socket.fd).address).toEqual(socket.address);
    socket.close();
  });
});

describe('An address that cannot be opened', () => {
  it('causes the system error if it is in use', async () => {
    const server = createServer().listen(0, loopback);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await expect(bindTcp(loopback, port)).rejects.toMatchObject({
      code: 'EADDRINUSE',
      message: `bind EADDRINUSE ${loopback}:${port}`,
    });
    server.close();
  });

  it('causes the system error if it is not of this machine', async () => {
    await expect(bindTcp('192.0.2.1', 0)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
  });

  it('is named in the error if its folder is missing', () => {
    expect(() => bindUnix('/nowhere/relay.sock')).toThrow(/^bind E[A-Z]+ \/nowhere\/relay\.sock$/);
  });

  it('is named in the error if its descriptor is not a socket', () => {
    const fd = openSync('/dev/null', 'r');
    expect(() => inheritedSocket(fd)).toThrow(new RegExp(`^bind E[A-Z]+ file descriptor ${fd}$`));
    closeSync(fd);
  });
});

describe('A Unix socket', () => {
  it('appears in its folder, has no TCP address, and can be listened on in another process', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'relay.sock');
    const socket = bindUnix(path);
    expect((await stat(path)).isSocket()).toBe(true);
    expect(socket.address).toBeNull();
    expect(await told({ path })).toBe('ECONNREFUSED');
    await using _worker = await listenElsewhere(socket, 'worker');
    expect(await told({ path })).toBe('worker');
    socket.close();
  });

  it('cannot be opened if there is already a file', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'relay.sock');
    const socket = bindUnix(path);
    expect(() => bindUnix(path)).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }));
    socket.close();
  });
});
