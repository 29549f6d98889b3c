import type { Express } from 'express';
import { anthropicDoor } from '../../../../src/features/anthropic/worker.js';
import { followsJob } from '../../../../src/features/background/preference.js';
import { readForm } from '../../../../src/features/files/multipart.js';
import { ollamaDoor } from '../../../../src/features/ollama/worker.js';
import { openAiDoor } from '../../../../src/features/openai/worker.js';
import { foreignPages } from '../../../../src/features/origins/foreign-pages.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { addressOf, isAccepted, trustProxies } from '../../../../src/worker/access/authenticate.js';
import { findDoor, speakAsClient } from '../../../../src/worker/api/doors.js';
import { ReadingPace } from '../../../../src/worker/http/body.js';
import { hostGuard, versionGuard } from '../../../../src/worker/http/checks.js';
import type { AsyncHandler, Handler } from '../../../../src/worker/http/exchange.js';
import { refusesFallback } from '../../../../src/worker/jobs/job-request.js';
import { type ExpressServer, serveWith } from '../../../support/doors/express-server.js';
import { keyGuard } from '../../../support/doors/key-guard.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

/** Length of a header that Node accepts. */
const length = 14_000;
/** Limit of the processor time for a request. An expression that goes back for each character takes half a second. */
const maxMs = 60;

const behindProxy: Handler = ({ app }, _res, next) => {
  trustProxies(app as Express, ['127.0.0.0/8']);
  next();
};
const guard = hostGuard(null, foreignPages(['http://a.example', 'moz-extension://*']));
const keys = { isNeeded: true, find: () => null, rightsOf: () => null };

/** Reads each header that the service reads. What it thinks of a header does not matter here. */
const readAll: AsyncHandler = async (req, res) => {
  const readers: readonly (() => unknown)[] = [
    () => addressOf(req),
    () => isAccepted({ keys: keys as never, clock: systemClock, peopleOf: () => null }, req),
    () => followsJob(req),
    () => refusesFallback({ req }),
    () => req.accepts(['application/json', 'text/event-stream']),
    () => req.acceptsEncodings('gzip'),
    () => keyGuard(new FakePrimary({}).asPrimary)(req, res, () => {}),
    () => guard(req, res, () => {}),
    () => readForm(req, res, new ReadingPace(systemClock), new Set(), async () => {}).catch(() => {}),
  ];
  for (const read of readers) {
    try {
      await read();
    } catch {} // a refusal is an answer, too
  }
  if (!res.headersSent) res.end();
};

const names = [
  ...['X-Forwarded-For', 'X-Forwarded-Proto', 'Authorization', 'X-API-Key', 'Prefer', 'Idempotency-Key', 'Accept'],
  ...['Accept-Encoding', 'Content-Type', 'Origin', 'Host', 'Access-Control-Request-Headers', 'traceparent'],
  ...['tracestate', 'X-Request-Id', 'X-No-Fallback', 'X-OpenWebUI-User-Id', 'Expect', 'Upgrade'],
];

/** Values that make a careless expression go back again and again. */
const values: readonly (readonly [name: string, make: (most: number) => string])[] = [
  ['blanks', (most) => `a${' '.repeat(most)}b`],
  ['blanks behind a known word', (most) => `respond-async;${' '.repeat(most)}b`],
  ['commas', (most) => `"${','.repeat(most)}`],
  ['semicolons', (most) => `multipart/form-data${' ;'.repeat(most / 2)}`],
  ['quotes', (most) => `"${'\\"'.repeat(most / 2)}`],
  ['types', (most) => 'text/event-stream;q=0.5,'.repeat(most / 24)],
  ['addresses', (most) => '127.0.0.1,'.repeat(most / 10)],
  ['colons', (most) => ':'.repeat(most)],
  ['slashes', (most) => 'http://a.example/'.repeat(most / 17)],
  ['words', (most) => 'Bearer a '.repeat(most / 9)],
];

async function processorMs(server: ExpressServer, header: string): Promise<number> {
  const before = process.cpuUsage();
  await server.get(header);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe('No header takes a worker long', () => {
  const doors = [ollamaDoor, anthropicDoor, openAiDoor];
  let server: ExpressServer;
  beforeAll(async () => {
    server = await serveWith([behindProxy, findDoor(doors), speakAsClient(doors), versionGuard, readAll]);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each(values)('of many %s', async (_, make) => {
    for (const name of names) {
      let best = Infinity;
      for (let attempt = 0; attempt < 4 && best > maxMs; attempt++)
        best = Math.min(best, await processorMs(server, `${name}: ${make(length)}`));
      expect([name, best > maxMs]).toEqual([name, false]);
    }
  });
});
