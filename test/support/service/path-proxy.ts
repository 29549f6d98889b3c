import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Starts a proxy that serves a service below `/relay/`, and records requests for other paths. */
export async function startPathProxy(port: number) {
  const outside: string[] = [];
  const server = createServer((req, res) => {
    const path = /^\/relay(\/.*)$/.exec(req.url ?? '')?.[1];
    if (path === undefined) {
      outside.push(req.url ?? '');
      res.writeHead(404).end();
      return;
    }
    const { method = 'GET', headers } = req;
    const passed = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    res.on('close', () => passed.destroy());
    req.pipe(passed);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/relay`,
    outside,
    async [Symbol.asyncDispose]() {
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}
