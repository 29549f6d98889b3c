import { chunk, type Received, receive, request } from '../../support/clients/raw-http.js';
import { expectSound } from '../../support/doors/door.js';
import { type LogRecord, type Service, startService } from '../../support/service/service.js';

/** Bytes for a connection, and the statuses of all expected answers, in order. */
interface HostileBytes {
  readonly name: string;
  readonly bytes: Buffer;
}

const body = '{"prompt":"a","model":"echo"}';
const size = body.length;
const hex = size.toString(16);
const end = '0\r\n\r\n';
const whole = chunk(body) + end;
const chunked = 'Transfer-Encoding: chunked';
/** Path of a request that a proxy may consider a part of the body before it. */
const smuggledPath = '/smuggled';
const smuggled = `GET ${smuggledPath} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

function post(headers: readonly string[], sent: string): string {
  return ['POST /ask HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', ...headers, '', sent].join('\r\n');
}

function inChunks(sent: string): string {
  return post([chunked], sent + smuggled);
}

function get(...lines: string[]): string {
  return ['GET /version HTTP/1.1', 'Host: localhost', ...lines, '', ''].join('\r\n') + smuggled;
}

const lengths = (value: string) => post([`Content-Length:${value}`], body + smuggled);
const codings = (...headers: string[]) => post(headers, whole + smuggled);

/** Bytes that servers and proxies interpret differently. The first answer must be a refusal, and the only one. */
const refused: Readonly<Record<string, string>> = {
  'a length and chunks': post([`Content-Length: ${whole.length + smuggled.length}`, chunked], whole + smuggled),
  'chunks and a length': post([chunked, 'Content-Length: 4'], whole + smuggled),
  'two lengths': post([`Content-Length: ${size}`, `Content-Length: ${size + 40}`], body + smuggled),
  'one length twice': post([`Content-Length: ${size}`, `Content-Length: ${size}`], body + smuggled),
  'a list of lengths': lengths(` ${size}, ${size}`),
  'a length with a plus': lengths(` +${size}`),
  'a length in hex': lengths(` 0x${hex}`),
  'a length cut by a space': lengths(' 2 9'),
  'a length with a tab behind': lengths(` ${size} \t`),
  'a length behind a vertical tab': lengths(` \x0b${size}`),
  'no length at all': lengths(''),
  'a length of 2^64': lengths(' 18446744073709551645'),
  'an unknown coding': codings('Transfer-Encoding: xchunked'),
  'a space before the colon': codings('Transfer-Encoding : chunked'),
  'a coding behind a vertical tab': codings('Transfer-Encoding: \x0bchunked'),
  'chunked twice': codings(chunked, chunked),
  'chunked, then identity': codings(chunked, 'Transfer-Encoding: identity'),
  'identity, then chunked': codings('Transfer-Encoding: identity', chunked),
  'chunked and identity in a list': codings('Transfer-Encoding: chunked, identity'),
  'gzip and chunked': codings('Transfer-Encoding: gzip, chunked'),
  'identity and a length': post(['Transfer-Encoding: identity', `Content-Length: ${size}`], body + smuggled),
  'a coding in quotes': codings('Transfer-Encoding: "chunked"'),
  'a coding with a parameter': codings('Transfer-Encoding: chunked;q=1'),
  'no coding at all': codings('Transfer-Encoding:'),
  'a folded coding': codings('Transfer-Encoding:\r\n chunked'),
  'a coding behind a bare LF': codings('X: y\nTransfer-Encoding: chunked'),
  'a coding behind a bare CR': codings('X: y\rTransfer-Encoding: chunked'),
  'a coding with NUL': codings('Transfer-Encoding: chunked\0'),
  'a folded first header': `POST /ask HTTP/1.1\r\n Host: localhost\r\n${chunked}\r\n\r\n${whole}${smuggled}`,
  'bare LFs': codings(chunked).replaceAll('\r\n', '\n'),
  'bare CRs': codings(chunked).replaceAll('\r\n', '\r'),
  'a head that ends with bare LFs': codings(chunked).replace('\r\n\r\n', '\n\n'),
  'an extension that ends with a bare LF': inChunks(`${hex};a\n${body}\r\n${end}`),
  'an extension with CRLF in quotes': inChunks(`${hex};a="\r\n${body}\r\n${end}`),
  'an extension with a bare CR': inChunks(`${hex};a\rb\r\n${body}\r\n${end}`),
  'an extension of 20 kB': inChunks(`${hex};${'a'.repeat(20_000)}\r\n${body}\r\n${end}`),
  'a chunk size that ends with a bare LF': inChunks(`${hex}\n${body}\r\n${end}`),
  'a negative chunk size': inChunks(`-1\r\n${body}\r\n${end}`),
  'a chunk size with 0x': inChunks(`0x${hex}\r\n${body}\r\n${end}`),
  'a chunk size with a space': inChunks(`${hex} \r\n${body}\r\n${end}`),
  'a chunk size beyond 2^64': inChunks(`1${'0'.repeat(16)}${hex}\r\n${body}\r\n${end}`),
  'a chunk size with an underscore': inChunks(`1_d\r\n${body}\r\n${end}`),
  'a chunk without its CRLF': inChunks(`${hex}\r\n${body}${end}`),
  'a chunk that is longer than its size': inChunks(`${hex}\r\n${body}XX${end}`),
  'lengths and codings as trailers': inChunks(`${chunk(body)}0\r\nContent-Length: 9\r\n${chunked}\r\n\r\n`),
  'a request as a trailer': post([chunked], `${chunk(body)}0\r\n${smuggled}`),
  'a request as a header': `GET /version HTTP/1.1\r\nHost: localhost\r\n${smuggled}`,
  'NUL in the name of a header': get('X\0Y: z'),
  'a soft hyphen in Content-Length': get('Content\xadLength: 3'),
  'tabs in the first line': get().replaceAll('GET /version ', 'GET\t/version\t'),
  'HTTP/0.9': `GET /version\r\n\r\n${smuggled}`,
  'HTTP/1.2': get().replace('HTTP/1.1', 'HTTP/1.2'),
  'HTTP/0.9 in the first line': get().replace('HTTP/1.1', 'HTTP/0.9'),
  'HTTP/2.0 in the first line': get().replace('HTTP/1.1', 'HTTP/2.0'),
  'chunks in HTTP/1.0': codings(chunked).replace('HTTP/1.1', 'HTTP/1.0'),
  'another coding in HTTP/1.0': codings('Transfer-Encoding: gzip, chunked').replace('HTTP/1.1', 'HTTP/1.0'),
};

/** Bytes with one normal answer, after which the connection is closed. */
const answeredOnce: Readonly<Record<string, string>> = {
  'an Upgrade to websocket': get('Connection: Upgrade', 'Upgrade: websocket'),
  'an Upgrade to h2c': get('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  'a length in HTTP/1.0': lengths(` ${size}`).replace('HTTP/1.1', 'HTTP/1.0'),
  'an unknown expectation': post(['Expect: 200-ok', `Content-Length: ${size}`], body + smuggled),
  'a length named by Connection': post(
    ['Connection: close, Content-Length', `Content-Length: ${size}`],
    body + smuggled,
  ),
};

/** Bytes that clearly contain a second request, which gets a normal answer. */
const answeredTwice: Readonly<Record<string, string>> = {
  'a length with a zero in front': lengths(` 0${size}`),
  'a coding in capitals': codings('Transfer-Encoding: CHUNKED'),
  'a coding behind a tab': codings('Transfer-Encoding:\tchunked'),
  'a header that looks like a coding': post(['Transfer_Encoding: chunked', `Content-Length: ${size}`], body + smuggled),
  'an extension': inChunks(`${hex};a=b\r\n${body}\r\n${end}`),
  'a chunk size with zeros in front': inChunks(`0000000000${hex}\r\n${body}\r\n${end}`),
  'a last chunk of many zeros': inChunks(`${chunk(body)}000\r\n\r\n`),
  'a trailer': inChunks(`${chunk(body)}0\r\nHost: evil\r\nX-API-Key: x\r\n\r\n`),
};

/** Bytes in which the second request is part of the body of the first, and is never executed. */
const answeredAsBody: Readonly<Record<string, string>> = {
  'a GET with a body': get(`Content-Length: ${smuggled.length}`),
  'a GET with chunks': get(chunked).replace(smuggled, chunk(smuggled) + end),
  'a HEAD with a body': get(`Content-Length: ${smuggled.length}`).replace('GET', 'HEAD'),
};

const listed = (shapes: Readonly<Record<string, string>>): HostileBytes[] =>
  Object.entries(shapes).map(([name, text]) => ({ name, bytes: Buffer.from(text, 'latin1') }));

const smugglingShapes = {
  refused: listed(refused),
  answeredOnce: listed(answeredOnce),
  answeredTwice: listed(answeredTwice),
  answeredAsBody: listed(answeredAsBody),
};

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await expectSound(service);
  await service.stop();
});

/** Sends the bytes. Returns the answers and the records of the requests after the last byte has arrived. */
async function exchanged({ bytes }: HostileBytes): Promise<Received & { readonly records: readonly LogRecord[] }> {
  const from = service.logs.length;
  const received = await receive(service.port, bytes);
  for (const id of received.requestIds)
    await service.log('http_request_completed', (record) => record.request_id === id);
  const records = service.logs.slice(from).filter(({ path }) => path !== '/health');
  return { ...received, records: records.filter(({ event }) => event === 'http_request_completed') };
}

const pathsOf = (records: readonly LogRecord[]) => records.map(({ path }) => path);

describe('A request with an ambiguous end', () => {
  it.each(smugglingShapes.refused)('is rejected, and the service reads nothing after it: $name', async (shape) => {
    const { statuses, isClosed, records } = await exchanged(shape);
    expect({ statuses, isClosed }).toEqual({ statuses: [400], isClosed: true });
    expect(pathsOf(records)).not.toContain(smuggledPath);
    expect(records).toHaveLength(1);
  });

  it.each(smugglingShapes.answeredOnce)('is answered, and the service reads nothing after it: $name', async (shape) => {
    const { statuses, isClosed, records } = await exchanged(shape);
    expect({ statuses, isClosed }).toEqual({ statuses: [200], isClosed: true });
    expect(pathsOf(records)).not.toContain(smuggledPath);
  });
});

describe('A request with an unambiguous end', () => {
  it.each(smugglingShapes.answeredTwice)('does not affect the next request: $name', async (shape) => {
    const { statuses, records } = await exchanged(shape);
    expect(statuses).toEqual([200, 404]);
    expect(pathsOf(records)).toEqual(['/ask', smuggledPath]);
  });

  it.each(smugglingShapes.answeredAsBody)('has a body that is not read as a request: $name', async (shape) => {
    const { statuses, records } = await exchanged(shape);
    expect(statuses).toEqual([200]);
    expect(pathsOf(records)).toEqual(['/version']);
  });
});

describe('Invalid HTTP', () => {
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
  ])('is rejected at once: %s', async (_what, bytes, status) => {
    const { statuses, isClosed } = await receive(service.port, bytes);
    expect({ statuses, isClosed }).toEqual({ statuses: [status], isClosed: true });
  });
});
