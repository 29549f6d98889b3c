import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { systemClock } from '../../../src/shared/clock.js';
import type { WorkerKey } from '../../../src/shared/ipc/protocol.js';
import type { FamilyFigures } from '../../../src/shared/metrics.js';
import {
  type AsyncHandler,
  type ExchangeParts,
  type Handler,
  HttpMetrics,
  openExchange,
} from '../../../src/worker/http/exchange.js';
import { answerError } from '../../../src/worker/http/responses.js';
import { LogBook } from '../basics/log-book.js';
import { exchange, type RawAnswer, request } from '../clients/raw-http.js';

export interface ExpressServer extends AsyncDisposable {
  readonly port: number;
  readonly log: LogBook;
  readonly metrics: HttpMetrics;
  /** Sends these bytes on a new connection. */
  send(bytes: Buffer): Promise<RawAnswer>;
  /** Sends GET / with these headers. */
  get(...headers: readonly string[]): Promise<RawAnswer>;
}

/** Serves every path with these handlers, between the opening of the exchange and the error handler. */
export async function serveWith(
  handlers: readonly (Handler | AsyncHandler)[],
  parts: Partial<ExchangeParts> = {},
): Promise<ExpressServer> {
  const [log, metrics] = [new LogBook(), new HttpMetrics()];
  const app = express();
  const heap = { touch: () => {} };
  app.use(openExchange({ log, metrics, heap, clock: systemClock, tracer: null, isClosing: () => false, ...parts }));
  app.use(...handlers);
  app.use(answerError(log));
  const server = createServer({ requireHostHeader: false }, app).listen(0, '127.0.0.1');
  server.on('checkContinue', app).on('checkExpectation', app); // like HttpServer
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    log,
    metrics,
    send: (bytes) => exchange(port, bytes),
    get: (...headers) => exchange(port, request('GET /', headers)),
    [Symbol.asyncDispose]: async () => {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Sends one request, these bytes or GET / with these headers, to a server with these handlers. */
export async function answerOf(
  handlers: readonly (Handler | AsyncHandler)[],
  sent: Buffer | readonly string[] = [],
): Promise<RawAnswer & Pick<ExpressServer, 'log'>> {
  await using server = await serveWith(handlers);
  const answer = await server.send(Buffer.isBuffer(sent) ? sent : request('GET /', sent));
  return { ...answer, log: server.log };
}

/** Returns a function for the values of a metric, by its name, that are not 0 and have changed since the last call. */
export async function countsIn(metrics: HttpMetrics): Promise<(name: string) => FamilyFigures['values']> {
  const families = await metrics.changes();
  return (name) =>
    families.find((family) => family.name === `model_api_${name}`)?.values.filter(({ value }) => value !== 0) ?? [];
}

/** Handler that runs before an API: the request is from this client, who has a key with these differences. */
export function asHolder(client: string, key: Partial<WorkerKey> | null): Handler {
  const plain = { name: 'ui', digest: '', scopes: [], isCapped: false, hasSubclients: false, expiresAt: null };
  return (_req, res, next) => {
    Object.assign(res.locals, { client, key: key && { ...plain, ...key } });
    next();
  };
}

/** Last handler: answers with the client's identity. */
export const passed: Handler = (_req, res) => {
  const { client } = res.locals;
  res.json({ passed: true, client });
};
