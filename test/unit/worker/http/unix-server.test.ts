import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { withResolvers } from '../../../../src/shared/async.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { bindUnix } from '../../../../src/shared/node-internals/connections.js';
import { ReadingPace } from '../../../../src/worker/http/body.js';
import type { Listener } from '../../../../src/worker/http/connection.js';
import { HttpMetrics } from '../../../../src/worker/http/exchange.js';
import { HttpServer } from '../../../../src/worker/http/server.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { settled } from '../../../support/basics/settled.js';
import { until } from '../../../support/basics/until.js';
import { request } from '../../../support/clients/raw-http.js';

/** Starts a server on a Unix socket. Its connections wait until the test accepts or refuses them. */
async function start() {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'socket');
  const begun: string[] = [];
  const listener: Listener = (req, res) => {
    begun.push(req.url ?? '');
    res.end(req.url);
  };
  const admission = withResolvers<boolean>();
  const asked: Socket[] = [];
  const limit = {
    admit: (socket: Socket) => {
      asked.push(socket);
      return admission.promise;
    },
  };
  const log = new LogBook();
  const pace = new ReadingPace(systemClock);
  const server = new HttpServer(listener, { log, metrics: new HttpMetrics(), clock: systemClock, limit, pace });
  await server.listen(bindUnix(path).fd);
  const open = async (...bytes: readonly (Buffer | string)[]) => {
    const socket = connect(path);
    let text = '';
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
    });
    socket.on('error', () => {});
    await once(socket, 'connect');
    for (const each of bytes) socket.write(each);
    return { socket, received: () => text };
  };
  const stop = async () => {
    await server.stop(0);
    await folder[Symbol.asyncDispose]();
  };
  return { begun, asked, log, open, server, answer: admission.resolve, [Symbol.asyncDispose]: stop };
}

function get(...paths: readonly string[]): Buffer {
  return Buffer.concat(paths.map((path) => request(`GET ${path}`)));
}

describe('A connection on a Unix socket', () => {
  it('starts its requests, in order, once its user is admitted', async () => {
    await using house = await start();
    const { socket, received } = await house.open(get('/1', '/2', '/3'));
    await until(() => house.asked.length === 1, 'the connection');
    await settled(20);
    expect(house.begun).toEqual([]);
    house.answer(true);
    await until(() => received().endsWith('/3'), 'the answers');
    expect(house.begun).toEqual(['/1', '/2', '/3']);
    socket.write(get('/4'));
    await until(() => received().endsWith('/4'), 'one more answer');
    expect(house.asked).toHaveLength(1);
    socket.destroy();
  });

  it('whose user is not admitted is answered with 429 and closed, and none of its requests starts', async () => {
    await using house = await start();
    const { socket, received } = await house.open(get('/1', '/2'));
    await until(() => house.asked.length === 1, 'the connection');
    const closed = once(socket, 'close');
    house.answer(false);
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 429 /);
    expect(received()).toContain('"error":"concurrency_limited"');
    expect([house.begun, house.server.size]).toEqual([[], 0]);
  });

  it('is refused like any other if it sends invalid HTTP, admitted or not', async () => {
    await using house = await start();
    const { socket, received } = await house.open(get('/1'), 'this is no HTTP\r\n\r\n');
    await until(() => house.asked.length === 1, 'the connection');
    house.answer(true);
    await once(socket, 'close');
    expect(received()).toMatch(/\/1HTTP\/1\.1 400 /);
    const other = await house.open('this is no HTTP\r\n\r\n');
    await once(other.socket, 'close');
    expect(other.received()).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('that closes before its admission starts no request', async () => {
    await using house = await start();
    const { socket } = await house.open(get('/1'));
    await until(() => house.asked.length === 1, 'the connection');
    socket.destroy();
    await until(() => house.server.size === 0, 'its end');
    house.answer(true);
    await settled(20);
    expect(house.begun).toEqual([]);
  });
});
