import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  closeGently,
  isUnixSocket,
  sendableOf,
  stopReadsWhile,
  UnreadWatch,
} from '../../../../src/shared/node-internals/connections.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';

const loopback = '127.0.0.1';
/** More than the kernel buffers for a client that reads nothing. */
const manyBytes = 32 * 1024 ** 2;

/** Returns both ends of a connection to this server. */
async function connected(server: Server, where: NetConnectOpts) {
  const accepting = once(server, 'connection');
  const client = connect(where);
  await once(client, 'connect');
  return { client, accepted: (await accepting)[0] as Socket };
}

async function listen(path?: string) {
  const server = createServer().listen(path === undefined ? { port: 0, host: loopback } : { path });
  await once(server, 'listening');
  const where = path === undefined ? { port: (server.address() as AddressInfo).port, host: loopback } : { path };
  const { client, accepted } = await connected(server, where);
  const close = async () => {
    client.destroy();
    accepted.destroy();
    server.close();
    await once(server, 'close');
  };
  return { client, accepted, [Symbol.asyncDispose]: close };
}

describe('A connection', () => {
  it('is recognised as one on a Unix socket', async () => {
    await using folder = await temporaryFolder();
    await using unix = await listen(join(folder.path, 'socket'));
    await using tcp = await listen();
    expect([unix, tcp].map(({ accepted }) => isUnixSocket(accepted))).toEqual([true, false]);
  });

  it('can be sent to another process until it is closed', async () => {
    await using tcp = await listen();
    expect(sendableOf(tcp.accepted)).not.toBeNull();
    tcp.accepted.destroy();
    expect([sendableOf(tcp.accepted), isUnixSocket(tcp.accepted)]).toEqual([null, false]);
  });

  it('whose client reads nothing is detected until the client reads again, however much of a write was sent', async () => {
    await using tcp = await listen();
    const watch = new UnreadWatch(tcp.accepted);
    expect([watch.unreadMs(0), watch.unreadMs(500)]).toEqual([0, 0]);
    tcp.client.pause();
    tcp.accepted.write(Buffer.alloc(manyBytes));
    let nowMs = 1000;
    const passSecond = async () => {
      nowMs += 1000;
      return watch.unreadMs(nowMs) >= 5000;
    };
    await until(passSecond, 'the kernel to take no more');
    tcp.client.resume();
    await until(async () => tcp.accepted.writableLength === 0, 'all to be read');
    expect(watch.unreadMs(nowMs)).toBe(0);
  });
});

describe('An HTTP server', () => {
  it('reads no body while it is paused, and continues afterwards', async () => {
    const server = createHttpServer().listen(0, loopback);
    await once(server, 'listening');
    const { client } = await connected(server, { port: (server.address() as AddressInfo).port, host: loopback });
    const arriving = once(server, 'request');
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${manyBytes}\r\n\r\n`);
    const [req] = (await arriving) as [IncomingMessage];
    let isStopped = true;
    let bytes = 0;
    stopReadsWhile(req, () => isStopped);
    req.socket.pause();
    req.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    const sent = once(client, 'drain');
    client.write(Buffer.alloc(manyBytes));
    await until(async () => client.writableLength > 0, 'the kernel to take no more');
    expect(bytes).toBeLessThan(manyBytes / 2);
    isStopped = false;
    req.socket.resume();
    await once(req, 'end');
    await sent;
    expect(bytes).toBe(manyBytes);
    client.destroy();
    await closeGently(server);
  });

  it('that closes still delivers a written answer to its client', async () => {
    const server = createHttpServer((_, res) => void res.end(Buffer.alloc(manyBytes))).listen(0, loopback);
    await once(server, 'listening');
    const { client } = await connected(server, { port: (server.address() as AddressInfo).port, host: loopback });
    client.pause();
    const asked = once(server, 'request');
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await asked;
    const closing = closeGently(server);
    let bytes = 0;
    client.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    client.resume();
    await Promise.all([closing, once(client, 'close')]);
    expect(bytes).toBeGreaterThan(manyBytes);
  });
});
