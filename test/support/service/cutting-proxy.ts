import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Starts a proxy that cuts this many event streams of jobs, each in the middle of its second piece, and can be down. */
export async function startCuttingProxy(port: number, cuts: number) {
  let left = cuts;
  let isDown = false;
  const server = createServer((req, res) => {
    const { method = 'GET', headers, url = '/' } = req;
    const passed = request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      if (left > 0 && /^\/jobs\/[^/]+\/events$/.test(url)) cut(answer, res, () => left--);
      else answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    res.on('close', () => passed.destroy());
    req.pipe(passed);
  });
  server.on('connection', (socket) => isDown && socket.destroy());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Number of streams that will still be cut. */
    get left() {
      return left;
    },
    /** Closes all connections, and each new one until `up` is called. */
    down() {
      isDown = true;
      server.closeAllConnections();
    },
    up() {
      isDown = false;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Passes the first piece and half of the second one. An answer with fewer pieces is passed whole. */
function cut(answer: IncomingMessage, res: ServerResponse, onCut: () => void): void {
  let count = 0;
  answer.on('data', (piece: Buffer) => {
    if (++count === 1) return void res.write(piece);
    if (count > 2) return;
    onCut();
    res.write(piece.subarray(0, piece.length / 2), () => res.destroy());
  });
  answer.on('end', () => count < 2 && res.end());
}
