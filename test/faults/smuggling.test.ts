import { expectSound } from '../support/door.js';
import { type HostileBytes, smuggledPath, smugglingShapes } from '../support/hostile-bytes.js';
import { request } from '../support/raw-http.js';
import { type Received, receive } from '../support/receive.js';
import { type LogRecord, type Service, startService } from '../support/service.js';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await expectSound(service);
  await service.stop();
});

/** What came back, and the records of the requests, once the last byte that is to come has come. */
async function exchanged({ bytes }: HostileBytes): Promise<Received & { readonly records: readonly LogRecord[] }> {
  const from = service.logs.length;
  const received = await receive(service.port, bytes);
  for (const id of received.requestIds)
    await service.log('http_request_completed', (record) => record.request_id === id);
  const records = service.logs.slice(from).filter(({ path }) => path !== '/health');
  return { ...received, records: records.filter(({ event }) => event === 'http_request_completed') };
}

const pathsOf = (records: readonly LogRecord[]) => records.map(({ path }) => path);

describe('A request whose end is in doubt', () => {
  it.each(smugglingShapes.refused)('is refused, and nothing behind it is read: $name', async (shape) => {
    const { statuses, isClosed, records } = await exchanged(shape);
    expect({ statuses, isClosed }).toEqual({ statuses: [400], isClosed: true });
    expect(pathsOf(records)).not.toContain(smuggledPath);
    expect(records).toHaveLength(1);
  });

  it.each(smugglingShapes.answeredOnce)('is answered, and nothing behind it is read: $name', async (shape) => {
    const { statuses, isClosed, records } = await exchanged(shape);
    expect({ statuses, isClosed }).toEqual({ statuses: [200], isClosed: true });
    expect(pathsOf(records)).not.toContain(smuggledPath);
  });
});

describe('A request whose end is clear', () => {
  it.each(smugglingShapes.answeredTwice)('leaves the next one alone: $name', async (shape) => {
    const { statuses, records } = await exchanged(shape);
    expect(statuses).toEqual([200, 404]);
    expect(pathsOf(records)).toEqual(['/ask', smuggledPath]);
  });

  it.each(smugglingShapes.answeredAsBody)('keeps its body for itself: $name', async (shape) => {
    const { statuses, records } = await exchanged(shape);
    expect(statuses).toEqual([200]);
    expect(pathsOf(records)).toEqual(['/version']);
  });
});

describe('What is no HTTP', () => {
  const hello = Buffer.from('16030100f8010000f40303', 'hex');
  it.each<[string, Buffer, number]>([
    ['a TLS hello', Buffer.concat([hello, Buffer.alloc(240, 7)]), 400],
    ['an SSH banner', Buffer.from('SSH-2.0-OpenSSH_9.6\r\n'), 400],
    ['a SOCKS greeting', Buffer.from([5, 1, 0]), 400],
    ['HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1'), 400],
    ['zeros', Buffer.alloc(100_000), 400],
    ['ten megabytes of one line', Buffer.alloc(10_000_000, 'a'), 400],
    ['a header of 10 MB', request('GET /version', [`X: ${'x'.repeat(10_000_000)}`]), 431],
    ['100,000 headers', request('GET /version', Array(100_000).fill('X: y')), 431],
    ['a path of 10 MB', request(`GET /${'x'.repeat(10_000_000)}`), 431],
  ])('is refused at once: %s', async (_what, bytes, status) => {
    const { statuses, isClosed } = await receive(service.port, bytes);
    expect({ statuses, isClosed }).toEqual({ statuses: [status], isClosed: true });
  });
});
