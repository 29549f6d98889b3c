import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { pageText, pdfOf, pdfWith, slowPdf } from '../../support/basics/pdf.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

const line = pageText('Invoice');
const words = Buffer.alloc(200 * 1024 ** 2, pageText('word '.repeat(12)));

/** Settings that allow no process except that of the running job. */
const noSpares = { MODEL_API_STANDBY: '0', MODEL_API_LIVE_SESSIONS: '0' };

let service: Service;

function ask(target: Service, file: Buffer, signal?: AbortSignal) {
  const body = { prompt: 'What?', model: 'echo', files: [{ name: 'a.pdf', data: file.toString('base64') }] };
  return target.post('/ask', body, {}, signal);
}

describe('A hostile PDF', () => {
  beforeAll(async () => {
    service = await startService({ env: { ...noSpares, MODEL_API_MAX_CONCURRENT: '4' } });
  });
  afterAll(() => service.stop());

  it.each<[string, () => Buffer, RegExp]>([
    ['a page of 200 MB', () => pdfWith(words), /^the PDF a\.pdf cannot be read: /],
    [
      'pages that contain each other',
      () => pdfWith(Buffer.from(line), '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>'),
      /cannot be read: /,
    ],
    [
      'a page tree that claims a page and has none',
      () => pdfWith(Buffer.from(line), '<< /Type /Pages /Kids [9 0 R] /Count 1 >>'),
      /cannot be read: /,
    ],
    ['a million pages', () => pdfOf({ count: 1_000_000 }), /^files\.0\.data: has more than 100 pages$/],
    ['garbage', () => Buffer.from('%PDF-1.7\n/Type /Pages /Count 1 startxref'), /cannot be read: /],
  ])('is refused with a reason, and fails no job of others: %s', async (_, file, message) => {
    const others = service.post('/ask', { prompt: 'hello', model: 'echo' });
    const { status, body } = await ask(service, file());
    expect([status, body.message]).toEqual([expect.any(Number), expect.stringMatching(message)]);
    expect(['cli_error', 'validation_error']).toContain(body.error);
    expect((await others).body.response).toBe('hello');
    await recovers(service);
  });

  it('runs none of its scripts', async () => {
    const script = '/OpenAction << /S /JavaScript /JS (app.launchURL("http://127.0.0.1:1/")) >> ';
    const { body } = await ask(service, pdfWith(Buffer.from(line), undefined, script));
    expect(body.response).toBe('<document name="a.pdf">\nInvoice\n</document>\n\nWhat?');
  });
});

describe('A small PDF that takes long to inspect', () => {
  const slow = slowPdf();

  async function upload(target: Service): Promise<string> {
    const form = new FormData();
    form.set('purpose', 'user_data');
    form.set('file', new Blob([slow]), 'a.pdf');
    const answer = await fetch(`${target.url}/v1/files`, { method: 'POST', body: form });
    return ((await answer.json()) as { id: string }).id;
  }

  it('delays no other client, also if 20 references name one file, and is refused with its field', async () => {
    expect(slow.length).toBeLessThan(3000);
    await using target = await startService({
      env: { ...noSpares, MODEL_API_WORKERS: '1', MODEL_API_FILES: 'memory' },
    });
    const workers = await target.workers();
    const id = await upload(target);
    const files = [
      ...Array.from({ length: 19 }, () => ({ file_id: id })),
      { data: slow.toString('base64'), media_type: 'application/pdf' },
    ];
    const attacks = Array.from({ length: 8 }, () => target.post('/ask', { prompt: 'What?', model: 'echo', files }));
    const waits: number[] = [];
    const others = target.post('/ask', { prompt: 'hello', model: 'echo' });
    let isOver = false;
    void Promise.allSettled(attacks).then(() => {
      isOver = true;
    });
    for (const begunMs = performance.now(); !isOver && performance.now() - begunMs < 20_000; ) {
      const sentMs = performance.now();
      await target.get('/health');
      waits.push(performance.now() - sentMs);
    }
    for (const { status, body } of await Promise.all(attacks))
      expect([status, body.message]).toEqual([400, 'files.0.file_id: is not a readable PDF: it has no pages']);
    expect((await others).body.response).toBe('hello');
    expect(Math.max(...waits)).toBeLessThan(5000);
    expect(await target.workers()).toEqual(workers);
  });
});

describe('A pdftotext', () => {
  let folder: TemporaryFolder;

  beforeEach(async () => {
    folder = await temporaryFolder();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  async function startWith(commands: string): Promise<Service> {
    const path = join(folder.path, 'pdftotext');
    await writeFile(path, `#!/bin/sh\n${commands}\n`);
    await chmod(path, 0o755);
    return startService({ env: { ...noSpares, PATH: `${folder.path}:${process.env.PATH}` } });
  }

  it('that hangs and forks is ended with its job', async () => {
    await using forking = await startWith('while :; do (setsid sleep 1000 &) ; sleep 0.1; done');
    const controller = new AbortController();
    const asked = ask(forking, pdfOf(), controller.signal).catch((error: Error) => error.name);
    await untilJobs(forking, 1, 0);
    controller.abort();
    expect(await asked).toBe('AbortError');
    await recovers(forking);
  });
});
