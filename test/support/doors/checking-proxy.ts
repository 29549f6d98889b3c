import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Contract } from './contract.js';

export interface CheckingProxy extends AsyncDisposable {
  readonly url: string;
  /** Answers that have contradicted docs/openapi.yaml. */
  readonly faults: Error[];
}

/**
 * Starts a proxy that checks each whole answer of a service against docs/openapi.yaml. The document describes a stream only
 * as text; forms.test.ts has the types of its events.
 */
export async function startCheckingProxy(target: string): Promise<CheckingProxy> {
  const contract = new Contract();
  const faults: Error[] = [];
  const server = createServer((req, res) =>
    pass(target, req, res, (answer, text) => {
      const header = (name: string) => [answer.headers[name]].flat().join(', ') || null;
      try {
        contract.check({
          method: req.method ?? 'GET',
          path: req.url ?? '',
          status: answer.statusCode ?? 0,
          header,
          text,
        });
      } catch (error) {
        faults.push(error as Error);
      }
    }),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    async [Symbol.asyncDispose]() {
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}

type Check = (answer: IncomingMessage, text: string) => void;

/** Passes a request on, and its answer back, each in a connection of its own. Calls `check` before the client has the end of the answer. */
function pass(target: string, req: IncomingMessage, res: ServerResponse, check: Check): void {
  const { method, headers } = req;
  const passed = request(target + (req.url ?? ''), { method, headers, agent: false }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, { ...answer.headers, connection: 'close' });
    res.flushHeaders();
    const pieces: Buffer[] = [];
    answer.on('data', (piece: Buffer) => {
      pieces.push(piece);
      res.write(piece);
    });
    answer.on('end', () => {
      check(answer, Buffer.concat(pieces).toString());
      req.unpipe(passed).resume(); // the rest of a body that the service has refused
      // A client that is still sending would lose the answer with the connection.
      if (req.complete) res.end();
      else req.once('close', () => res.end());
    });
    answer.on('error', () => res.destroy());
  });
  // The service may close after its answer, while the rest of the request is written.
  passed.on('error', () => res.writableEnded || res.destroy());
  res.on('close', () => passed.destroy());
  req.pipe(passed);
}
