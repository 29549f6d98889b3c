import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { send } from '../../src/command/http.js';

const silentMs = 100;

describe('a request of the command', () => {
  it.each<[string, string | null]>([
    ['no answer comes', null],
    ['an answer begins, and no more of it comes', 'a half'],
  ])('fails where %s', async (_when, start) => {
    const server = createServer((_request, response) => {
      if (start !== null) response.writeHead(200, { 'Content-Length': 99 }).write(start);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const answer = send({ method: 'GET', url, headers: {}, body: undefined, silentMs, signal: undefined });
    await expect(answer.then(text)).rejects.toThrow('nothing came for 0.1 s');
    server.close().closeAllConnections();
  });
});
