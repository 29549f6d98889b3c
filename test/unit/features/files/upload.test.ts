import { connect } from 'node:net';
import { receiveFile, storeFile } from '../../../../src/features/files/upload.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { ReadingPace } from '../../../../src/worker/http/body.js';
import type { AsyncHandler } from '../../../../src/worker/http/exchange.js';
import { sendJson } from '../../../../src/worker/http/responses.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';
import { until } from '../../../support/basics/until.js';
import { asHolder, serveWith } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { processorMs } from '../../../support/processes/processor-time.js';

/** Primary that stores files, and the pieces that it has received. */
function storingPrimary(more: Readonly<Record<string, unknown>> = {}) {
  const pieces: Buffer[] = [];
  const appendFile = ({ data }: { readonly data: string }) => void pieces.push(Buffer.from(data, 'base64'));
  const completeFile = (whole: object) => ({ ...whole });
  return { primary: new FakePrimary({ createFile: { id: 'file-1' }, appendFile, completeFile, ...more }), pieces };
}

type Part = readonly [headers: string, content: string | Buffer];

function formOf(parts: readonly Part[], end = '--edge--\r\n'): Buffer {
  const bytes = parts.flatMap(([headers, content]) => [
    `--edge\r\nContent-Disposition: form-data; ${headers}\r\n\r\n`,
    content,
    '\r\n',
  ]);
  return Buffer.concat([...bytes, end].map((piece) => Buffer.from(piece as string)));
}

interface UploadOptions {
  readonly type?: string;
  readonly usual?: 'user_data' | null;
  /** Answer of the primary to this call. */
  readonly appendFile?: unknown;
}

async function uploaded(
  body: Buffer,
  { type = 'multipart/form-data; boundary=edge', usual = null, ...more }: UploadOptions = {},
) {
  const { primary, pieces } = storingPrimary(more);
  const unknownFields: string[] = [];
  const receive: AsyncHandler = async (req, res) => {
    const { file, unknown } = await receiveFile(primary.asPrimary, req, res, new ReadingPace(systemClock), usual);
    unknownFields.push(...unknown);
    sendJson(res, file);
  };
  await using server = await serveWith([asHolder('key ada', null), receive]);
  const head = `POST / HTTP/1.1\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
  const answer = await server.send(Buffer.concat([Buffer.from(head), body]));
  const created = primary.calls.find(({ name }) => name === 'createFile')?.request;
  return { answer, calls: primary.calls.map(({ name }) => name), created, pieces, unknownFields };
}

const file: Part = ['name="file"; filename="folder/a\u0007.jsonl"\r\nContent-Type: text/plain', 'one\n\ntwo'];
const purpose: Part = ['name="purpose"', 'batch'];

describe('The name of an uploaded file', () => {
  const euro = "UTF-8''%e2%82%ac%20rates.txt";

  it.each([
    ['filename="a.txt"', 'a.txt'],
    [`filename="a.txt"; filename*=${euro}`, '€ rates.txt'],
    [`filename*=${euro}; filename="a.txt"`, '€ rates.txt'],
    [`filename*="${euro}"`, '€ rates.txt'],
    [`filename="a; filename*=${euro}"`, `a; filename*=${euro}`],
    ['filename="a.txt"; FileName* = iso-8859-1\'de\'f%fcr.txt', 'für.txt'],
    ['filename="a.txt"; filename*=UTF-8\'\'..%2Fb.txt', 'b.txt'],
    ['filename="a.txt";\r\n filename*=UTF-8\'\'b.txt', 'b.txt'],
    ['filename="a %22b%22%0D%0Ac%41.txt"', 'a "b"  c%41.txt'],
    ['filename="grüße €.txt"', 'grüße €.txt'],
    ['filename="a \\"b\\".txt"', 'a "b".txt'],
    ['filename="a.txt"; filename*=UTF-8\'\'%ff', 'a.txt'],
    ['filename="a.txt"; filename*=UTF-8\'\'%e2%8', 'a.txt'],
    ['filename="a.txt"; filename*=koi8-r\'\'%c1', 'a.txt'],
  ])('is taken from %s', async (names, expected) => {
    const { created } = await uploaded(formOf([[`name="file"; ${names}`, 'x'], purpose]));
    expect(created).toMatchObject({ name: expected });
  });
});

describe('A form', () => {
  it('may have unknown fields, which are reported', async () => {
    const unknown: Part[] = [
      ['name="model"', 'x'.repeat(5000)],
      ['name="tags[]"', 'a'],
      ['name="tags[]"', 'b'],
      ['name="a\u0000 b"', 'c'],
    ];
    const { answer, unknownFields } = await uploaded(formOf([...unknown, file, purpose]));
    expect([answer.status, unknownFields.slice(0, 2)]).toEqual([200, ['model', 'tags[]']]);
  });

  it('may have fields with file names, as a Blob in a form has', async () => {
    const { answer, created, unknownFields } = await uploaded(
      formOf([
        [`name="meta"; filename="blob"; filename*=UTF-8''other.txt\r\nContent-Type: application/json`, '{"a":1}'],
        file,
        ['name="purpose"; filename="blob"\r\nContent-Type: text/plain', 'batch'],
      ]),
    );
    expect([answer.status, answer.body.purpose, unknownFields]).toEqual([200, 'batch', ['meta']]);
    expect(created).toMatchObject({ name: 'a .jsonl' });
  });

  it.each<[string, Buffer]>([
    ['a million empty parts', Buffer.concat([formOf([file], ''), Buffer.alloc(10e6, '--edge\r\n\r\n\r\n')])],
    ['a million parts without headers', Buffer.alloc(10e6, '\r\n--edge')],
    ['a million fields', Buffer.alloc(10e6, '--edge\r\nContent-Disposition: form-data; name="f"\r\n\r\n\r\n')],
    ['megabytes before its first part', Buffer.concat([Buffer.alloc(2e6, 'x'), Buffer.from('\r\n'), formOf([file])])],
    ['a header of megabytes', formOf([file, [`name="${'n'.repeat(2e6)}"`, 'x']])],
    ['megabytes in a field', formOf([file, ['name="x"', 'v'.repeat(2e6)]])],
  ])('is refused before it costs much: %s', async (_, body) => {
    const begunMs = processorMs();
    const { answer } = await uploaded(body);
    expect(processorMs() - begunMs).toBeLessThan(1000);
    expect([answer.status, answer.body.message]).toEqual([
      400,
      expect.stringMatching(/^body: must have (one file|at most 256 KB)/),
    ]);
  });

  it.each(['multipart/form-data; boundary=edge; boundary=other', 'multipart/form-data; boundary="a\u00e9"'])(
    'is refused with an unclear boundary: %s',
    async (type) => {
      const { answer } = await uploaded(formOf([file, purpose]), { type });
      expect([answer.status, answer.body.message]).toEqual([400, expect.stringMatching(/^Content-Type: must be/)]);
    },
  );
});

describe('An uploaded file', () => {
  it.each([
    ['after the other fields', [purpose, file]],
    ['before the other fields', [file, purpose]],
  ] as const)('is stored with the number of its lines: %s', async (_, parts) => {
    const { answer, pieces } = await uploaded(formOf(parts));
    expect(answer).toMatchObject({ status: 200, body: { id: 'file-1', purpose: 'batch', lines: 2, ttlMs: null } });
    expect(String(Buffer.concat(pieces))).toBe('one\n\ntwo');
  });

  it('is sent in pieces of bounded size', async () => {
    const content = Buffer.alloc(500_000, 'ü');
    const { pieces } = await uploaded(formOf([['name="file"; filename="a"', content], purpose]));
    expect(Buffer.concat(pieces).equals(content)).toBe(true);
    expect(Math.max(...pieces.map(({ length }) => length))).toBe(192 * 1024);
  });

  it('may expire earlier, and has a usual purpose in the API of Anthropic', async () => {
    const expiry: Part[] = [
      ['name="expires_after[anchor]"', 'created_at'],
      ['name="expires_after[seconds]"', '3600'],
    ];
    for (const parts of [expiry, [['name="expires_in_seconds"', '3600']] as const]) {
      const { answer } = await uploaded(formOf([file, ...parts]), { usual: 'user_data' });
      expect(answer.body).toMatchObject({ purpose: 'user_data', lines: 0, ttlMs: 3_600_000 });
    }
  });

  const badForms: readonly (readonly [string, readonly Part[], RegExp])[] = [
    ['no file', [purpose], /^file: must be sent/],
    ['no purpose', [file], /^purpose: must be batch or user_data/],
    ['another purpose', [file, ['name="purpose"', 'vision']], /^purpose: must be/],
    ['two files', [file, file, purpose], /must be one file/],
    ['another field for the file', [['name="data"; filename="a"', 'x'], purpose], /^file: must be sent/],
    [
      'a long field with a file name',
      [file, ['name="purpose"; filename="p"', 'x'.repeat(2000)]],
      /^purpose: must have/,
    ],
    ['a repeated field', [file, purpose, purpose], /^purpose: must be sent once/],
    ['a long field', [file, ['name="purpose"', 'x'.repeat(2000)]], /^purpose: must have at most/],
    ['too many fields', [file, ...Array.from({ length: 30 }, (_, n): Part => [`name="f${n}"`, ''])], /at most 16/],
    ['an expiry of a minute in Anthropic', [file, purpose, ['name="expires_in_seconds"', '60']], /^expires_in_seconds/],
    ['an expiry of a minute', [file, purpose, ['name="expires_after[seconds]"', '60']], /^expires_after\[anchor\]/],
  ];

  it.each(badForms)('is refused and removed: %s', async (_, parts, message) => {
    const { answer, calls } = await uploaded(formOf(parts));
    expect(answer.status).toBe(400);
    expect(String(answer.body.message)).toMatch(message);
    expect(calls).not.toContain('completeFile');
    expect(calls.includes('deleteFile')).toBe(calls.includes('createFile'));
  });

  it.each([
    ['another type', 'application/json', formOf([file, purpose])],
    ['no boundary', 'multipart/form-data', formOf([file, purpose])],
    ['no end', 'multipart/form-data; boundary=edge', formOf([file, purpose], '')],
    ['no form', 'multipart/form-data; boundary=edge', Buffer.from('text')],
  ])('is refused without a valid form: %s', async (_, type, body) => {
    const { answer } = await uploaded(body, { type });
    expect([answer.status, answer.body.error]).toEqual([400, 'validation_error']);
  });

  it('is removed when the primary refuses its bytes', async () => {
    const { answer, calls } = await uploaded(formOf([file, purpose]), {
      appendFile: new RelayError('payload_too_large', 'too large'),
    });
    expect([answer.status, calls.at(-1)]).toEqual([413, 'deleteFile']);
  });
});

it('A file that a worker has is stored as lines, and removed after a failure', async () => {
  const { primary, pieces } = storingPrimary();
  const owner = { client: 'key ada', purpose: 'message_batch', name: 'requests.jsonl' } as const;
  expect(await storeFile(primary.asPrimary, owner, ['{"a":1}', '{"b":2}'])).toBe('file-1');
  expect(String(Buffer.concat(pieces))).toBe('{"a":1}\n{"b":2}\n');
  const failing = storingPrimary({ completeFile: new RelayError('store_unavailable', 'down') }).primary;
  await expect(storeFile(failing.asPrimary, owner, ['x'])).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(failing.calls.at(-1)?.name).toBe('deleteFile');
});

describe('A broken upload', () => {
  it.each([
    ['within the file', '--edge\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc'],
    ['in the headers of the file', '--edge\r\nContent-Disposition: form-data; name="file"; filen'],
    [
      'in a second file',
      `${String(formOf([file], ''))}--edge\r\nContent-Disposition: form-data; name="file"; filename="b"\r\n\r\nb`,
    ],
  ])('that ends %s is refused, and no file is left', async (_where, body) => {
    const created = withResolvers<object>();
    const { primary } = storingPrimary({ createFile: () => created.promise });
    const receive: AsyncHandler = async (req, res) =>
      sendJson(res, (await receiveFile(primary.asPrimary, req, res, new ReadingPace(systemClock), null)).file);
    await using server = await serveWith([asHolder('key ada', null), receive]);
    const head = `POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=edge\r\nConnection: close\r\n`;
    const answer = await server.send(Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`));
    expect(answer.status).toBe(400);
    created.resolve({ id: 'file-1' });
    await settled();
    const calls = primary.calls.map(({ name }) => name);
    expect(calls.filter((name) => name === 'deleteFile')).toHaveLength(calls.includes('createFile') ? 1 : 0);
    expect(calls).not.toContain('completeFile');
  });
});

describe('A slow upload', () => {
  const head = 'POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=edge\r\nContent-Length: 9000000\r\n\r\n';
  const begin = '--edge\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';

  /** Begins an upload to a server with a clock that stands still. */
  async function slowUpload() {
    const clock = new FakeClock();
    const { primary, pieces } = storingPrimary();
    const receive: AsyncHandler = async (req, res) =>
      sendJson(res, (await receiveFile(primary.asPrimary, req, res, new ReadingPace(clock), 'user_data')).file);
    const server = await serveWith([asHolder('key ada', null), receive]);
    const socket = connect(server.port, '127.0.0.1');
    socket.write(head + begin);
    return { clock, server, socket, pieces };
  }

  it('goes on while it flows, and is given up after 30 s with less than a kilobyte', async () => {
    const { clock, server, socket, pieces } = await slowUpload();
    let answer = '';
    socket.on('data', (piece: Buffer) => {
      answer += String(piece);
    });
    for (let count = 1; count <= 5; count++) {
      socket.write(Buffer.alloc(192 * 1024, 'x'));
      await until(() => pieces.length === count || undefined, 'the piece');
      await clock.advance(20_000);
    }
    expect(answer).toBe('');
    socket.write('x');
    await clock.advance(40_000);
    await until(() => answer !== '' || undefined, 'the answer');
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    socket.destroy();
    await server[Symbol.asyncDispose]();
  });
});
