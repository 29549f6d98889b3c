import { responseFiles } from '../../../../src/features/openai/responses-input.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { fillFiles } from '../../../../src/worker/jobs/file-references.js';
import { pdfOf } from '../../../support/basics/pdf.js';
import { readingFiles } from '../../../support/doors/no-features.js';
import { always, answerEvents, begun, sdkDoor } from '../../../support/doors/sdk-door.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const png = Buffer.from('89504e470d0a1a0a0000', 'hex');

/** Files of the client, each with its type. */
const files: Readonly<Record<string, readonly [mediaType: string, bytes: Buffer]>> = {
  'file-pdf': ['application/octet-stream', pdfOf({ pages: 2 })],
  'file-text': ['application/octet-stream', Buffer.from('grüße')],
  'file-json': ['Application/JSON; charset=utf-8', Buffer.from('{}')],
  'file-png': ['application/octet-stream', png],
  'file-long': ['text/plain', Buffer.alloc(3000, 'long ')],
  'file-pages': ['application/pdf', pdfOf({ count: 101 })],
};

type FileKey = { readonly id: string; readonly from: number };

const answers = {
  file: ({ id }: FileKey) => {
    const [mediaType, bytes] = files[id] ?? [];
    if (mediaType === undefined) throw new RelayError('not_found', 'no such file');
    return { id, purpose: 'user_data', name: `${id}.x`, mediaType, bytes: bytes?.length };
  },
  filePiece: ({ id, from }: FileKey) => ({ data: files[id]?.[1].subarray(from, from + 1000).toString('base64') }),
};

const conversation = { id: 'c', messageCount: 2, tokensUsed: 1, createdAt: 0, lastActivityAt: 0, expiresAt: 0 };
const events = [...begun, ...answerEvents('ok'), jobDone({ conversation })];

/** Returns a request with these parts. `field`: list for them in POST /ask and POST /chat. */
function bodyOf(path: string, content: readonly object[], field: string): object {
  if (path === '/ask') return { prompt: 'a', [field]: content };
  if (path === '/chat') return { message: 'a', [field]: content };
  const messages = [{ role: 'user', content: [...content, textOf(path)] }];
  return { model: 'eliza', ...(path === '/v1/responses' ? { input: messages } : { messages, max_tokens: 9 }) };
}

const textOf = (path: string) => ({ type: path === '/v1/responses' ? 'input_text' : 'text', text: 'a' });

async function post(path: string, content: readonly object[], given: object = answers, field = 'files') {
  await using door = await sdkDoor(always(...events), { bodyLimitBytes: 8000, answers: { ...given } });
  const { status, body: answer } = await door.post(path, bodyOf(path, content, field));
  const job = door.primary.calls.find(({ name }) => name === 'run')?.request as JobRequest | undefined;
  return { status, answer, job, calls: door.primary.calls.map(({ name }) => name) };
}

const block = (id: unknown, type = 'document') => ({ type, source: { type: 'file', file_id: id } });
const chatFile = (id: unknown) => ({ type: 'file', file: { file_id: id } });
const inputFile = (id: unknown, type = 'input_file') => ({ type, file_id: id });

const own = (id: unknown) => ({ file_id: id });

const forms = [
  ['/v1/messages', block],
  ['/v1/chat/completions', chatFile],
  ['/v1/responses', inputFile],
  ['/ask', own],
  ['/chat', own],
] as const;

describe('A file id in a request', () => {
  describe.each(forms)('of %s', (path, part) => {
    it.each([
      ['file-pdf', 'application/pdf', { pages: 2 }],
      ['file-text', 'text/plain', {}],
      ['file-json', 'text/plain', {}],
    ])('becomes the document of its bytes: %s', async (id, mediaType, more) => {
      const { status, job } = await post(path, [part(id)]);
      const data = files[id]?.[1].toString('base64');
      expect([status, job?.images]).toEqual([
        200,
        [{ mediaType, data, name: `${id}.x`, at: 0, digest: expect.any(String), ...more }],
      ]);
    });

    it.each<[string, number, RegExp, object[]]>([
      ['of no file of the client', 404, /file_id: no such file/, [part('file-other')]],
      ['that is no text', 400, /file_id: must be a string/, [part(7)]],
      [
        'of a file that is no document',
        400,
        /file_id: must be application\/pdf, or a type of text/,
        [part('file-png')],
      ],
      ['of a PDF with too many pages', 400, /file_id: has more than 100 pages/, [part('file-pages')]],
      [
        'of files that are together too large',
        413,
        /larger than 8000 bytes including the files/,
        [part('file-long'), part('file-long')],
      ],
      [
        'of the 21st document',
        400,
        /content\.20: is document 21: a request may have 20|files: must be at most 20 files/,
        Array(21).fill(part('file-text')),
      ],
    ])('is refused: %s', async (_, status, message, parts) => {
      const refused = await post(path, parts);
      expect([refused.status, JSON.stringify(refused.answer)]).toEqual([status, expect.stringMatching(message)]);
      expect(refused.calls).not.toContain('run');
    });

    it('reads a file once for all its parts, and no file before all are known', async () => {
      const { calls } = await post(path, [part('file-text'), part('file-text')]);
      expect(calls.filter((name) => name.startsWith('file'))).toEqual(['file', 'filePiece', 'filePiece']);
      expect((await post(path, [part('file-text'), part('file-other')])).calls).toEqual(['file', 'file']);
    });

    it('names the setting that switches files off', async () => {
      const off = new RelayError('not_found', 'this service stores no files (MODEL_API_FILES is off)');
      const { status, answer } = await post(path, [part('file-pdf')], { file: off });
      expect([status, JSON.stringify(answer)]).toEqual([404, expect.stringContaining('MODEL_API_FILES is off')]);
    });
  });

  it.each([
    ['/v1/messages', block('file-png', 'image')],
    [
      '/v1/messages',
      {
        type: 'document',
        source: { type: 'content', content: [{ type: 'text', text: 'a' }, block('file-png', 'image')] },
      },
    ],
    ['/v1/responses', inputFile('file-png', 'input_image')],
    ['/ask', own('file-png')],
    ['/chat', own('file-png')],
  ])('becomes an image: %s', async (path, part) => {
    const { job } = await post(path, [part], answers, 'images');
    expect(job?.images).toContainEqual({ mediaType: 'image/png', data: png.toString('base64'), at: 0 });
  });

  it('of a file that is no image is refused as an image of POST /ask', async () => {
    const { status, answer, calls } = await post('/ask', [own('file-text')], answers, 'images');
    expect([status, answer.message]).toEqual([400, expect.stringContaining('images.0.file_id: must be one of')]);
    expect(calls).not.toContain('run');
  });

  it('has the name that the client of POST /ask has sent', async () => {
    const { job } = await post('/ask', [{ name: 'mine.txt', file_id: 'file-text' }, { text: 'b' }]);
    expect(job?.images).toMatchObject([{ name: 'mine.txt' }, { data: 'Yg==', name: '' }]);
  });

  it.each([
    [{ file_id: 'file-text', data: 'YQ==' }, 'files.0: must have one of data, text and file_id'],
    [{ file_id: 'file-text', media_type: 'text/plain' }, 'files.0.media_type: must not be sent together with file_id'],
    [{}, 'files.0: must have one of data, text and file_id'],
  ])('stands alone in a file of POST /ask: %j', async (file, message) => {
    const { status, answer } = await post('/ask', [file]);
    expect([status, answer.message]).toEqual([400, message]);
  });

  it('is refused beside the bytes of the file', async () => {
    const { answer } = await post('/v1/chat/completions', [
      { type: 'file', file: { file_id: 'file-pdf', file_data: 'YQ==' } },
    ]);
    expect(JSON.stringify(answer)).toContain('file_id: must not be sent together with file_data');
  });

  it('is refused with the name of its field if this service stores no files', async () => {
    const body = { input: [{ role: 'user', content: [inputFile('file-text')] }] };
    const refused = fillFiles(null, body, responseFiles, { client: 'key ada', bytes: 100 });
    await expect(refused).rejects.toMatchObject({
      code: 'not_found',
      message: 'input.0.content.0.file_id: this service stores no files',
    });
  });

  it('is not read for a client that has disconnected while it waited', async () => {
    const primary = new FakePrimary(answers);
    const { readFiles } = readingFiles(primary.asPrimary, 8000);
    const body = { input: [{ role: 'user', content: [inputFile('file-text')] }] };
    const sender = { client: 'key ada' as const, bytes: 100, isGone: () => true };
    await expect(fillFiles(readFiles, body, responseFiles, sender)).rejects.toThrow('the client has disconnected');
    expect(primary.calls).toEqual([]);
  });

  it('is read in turns of key holders, and the sub-clients of a key are one of them', async () => {
    const primary = new FakePrimary(answers);
    const { readFiles } = readingFiles(primary.asPrimary, 8000);
    const fill = (client: ClientText) =>
      fillFiles(readFiles, { input: [{ role: 'user', content: [inputFile('file-text')] }] }, responseFiles, {
        ...{ client, bytes: 100 },
      });
    await Promise.all([fill('key ada/one'), fill('key ada/two'), fill('key bob')]);
    const read = primary.calls.filter(({ name }) => name === 'file');
    const clients = read.map(({ request }) => (request as { readonly client: ClientText }).client);
    expect(clients).toEqual(['key ada/one', 'key bob', 'key ada/two']);
  });

  it('is read for the count of tokens, too', async () => {
    await using door = await sdkDoor(always(), { answers });
    const messages = [{ role: 'user', content: [block('file-pdf')] }];
    const { body } = await door.post('/v1/messages/count_tokens', { model: 'eliza', messages });
    expect(body).toEqual({ input_tokens: 7 + 2 * 2000 });
  });

  it('limits the number of documents that have no id, too, and in results of tools', async () => {
    const plain = { type: 'document', source: { type: 'text', data: 'a' } };
    const result = { type: 'tool_result', tool_use_id: 'c', content: Array(21).fill(plain) };
    const { status, answer } = await post('/v1/messages', [result]);
    expect([status, JSON.stringify(answer)]).toEqual([
      400,
      expect.stringContaining('content.0.content.20: is document 21'),
    ]);
  });
});

describe('Parts in other parts', () => {
  const parts = Array.from({ length: 20_000 }, () => ({ type: 'x' }));
  const inside = (levels: number) => {
    let content: object[] = parts;
    for (let level = 0; level < levels; level++) content = [{ type: 'x', content }];
    return { input: [{ role: 'user', content }] };
  };

  async function processorMs(body: object): Promise<number> {
    const before = process.cpuUsage();
    await fillFiles(null, body, responseFiles, { client: 'key a', bytes: 1 });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  }

  it('take as long as parts beside each other, however many are around them', async () => {
    const [flat, deep] = [inside(1), inside(90)];
    let [flatMs, deepMs] = [Infinity, Infinity];
    for (let attempt = 0; attempt < 6; attempt++) {
      flatMs = Math.min(flatMs, await processorMs(flat));
      deepMs = Math.min(deepMs, await processorMs(deep));
    }
    expect(deepMs).toBeLessThan(2 * flatMs + 10);
  });
});
