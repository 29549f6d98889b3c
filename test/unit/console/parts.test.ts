import { FakeClock } from '../../support/basics/fake-clock.js';
import { consolePart } from '../../support/clients/console-parts.js';

describe('An address in the console', () => {
  interface Router {
    placeOf(hash: string): { page: string; params: Record<string, string> };
    hrefOf(page: string, params?: Record<string, string>): string;
  }
  const router = consolePart<Router>('base/router.mjs');

  it.each([
    ['', '', {}],
    ['#', '', {}],
    ['#/', '', {}],
    ['#/ask', 'ask', {}],
    ['#/ask/', 'ask', {}],
    ['#ask', 'ask', {}],
    ['#/ask?conversation=a%20b&x=%3F', 'ask', { conversation: 'a b', x: '?' }],
    ['#/ask?conversation=a?b', 'ask', { conversation: 'a' }],
    ['#/%', '%', {}],
  ])('is parsed from "%s"', async (hash, page, params) => {
    expect((await router).placeOf(hash)).toEqual({ page, params });
  });

  it('is written in the format that is parsed', async () => {
    const { hrefOf, placeOf } = await router;
    expect(hrefOf('now')).toBe('#/now');
    const params = { conversation: 'a/b?c=d&e#f%', note: 'ü 🙂' };
    expect(placeOf(hrefOf('ask', params))).toEqual({ page: 'ask', params });
  });
});

describe('Formatted figures', () => {
  interface Format {
    durationText(ms: number): string;
    costText(dollars: number): string;
    bytesText(bytes: number): string;
    plural(count: number, one: string): string;
  }
  const format = consolePart<Format>('base/format.mjs');

  it.each([
    [0, '0 ms'],
    [99, '99 ms'],
    [100, '0.1 s'],
    [9940, '9.9 s'],
    [9960, '10 s'],
    [59_400, '59 s'],
    [59_600, '1 min'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h'],
    [7_500_000, '2 h 5 min'],
    [93_600_000, '1 day 2 h'],
    [2_592_000_000, '30 days'],
  ])('show %d ms as %s', async (ms, text) => {
    expect((await format).durationText(ms)).toBe(text);
  });

  it('are short, with the significant digits', async () => {
    const { costText, bytesText, plural } = await format;
    expect([0, 0.0042, 1.5, 1234].map(costText)).toEqual(['$0.00', '$0.0042', '$1.50', '$1,234.00']);
    expect([12, 1500, 99_900, 15_500_000].map(bytesText)).toEqual(['12 B', '1.5 KB', '100 KB', '16 MB']);
    expect([plural(1, 'job'), plural(1234, 'job')]).toEqual(['1 job', '1,234 jobs']);
  });
});

describe('A pasted schema', () => {
  interface Pasted {
    readonly kind: string;
    readonly message?: string;
  }
  const schema = consolePart<{ readSchema(text: string): Pasted }>('ask/draft.mjs');

  it.each([
    ['', 'none'],
    [' \n', 'none'],
    ['{"type":"object"}', 'schema'],
    ['{"properties":{}}', 'schema'],
    ['{"$ref":"#/$defs/a"}', 'schema'],
    ['{', 'fault'],
    ['[]', 'fault'],
    ['null', 'fault'],
    ['"object"', 'fault'],
    ['{"type":"string"}', 'fault'],
    ['{}', 'fault'],
    [`{"type":"object","description":"${'x'.repeat(70_000)}"}`, 'fault'],
  ])('is accepted in the formats of the API: %.40s', async (text, kind) => {
    expect((await schema).readSchema(text)).toMatchObject({ kind });
  });
});

describe('An image', () => {
  interface Images {
    mediaTypeOf(begin: Uint8Array): string | null;
    tooMany(images: readonly { mediaType: string; data: string }[]): string | null;
    documentFault(content: ArrayBuffer): string | null;
    sizeOf(file: { readonly data: string }): number;
  }
  const images = consolePart<Images>('ask/images.mjs');

  it.each([
    ['89504e470d0a1a0a00000000', 'image/png'],
    ['ffd8ffe000104a4649460001', 'image/jpeg'],
    ['474946383961010001008000', 'image/gif'],
    ['524946461a00000057454250', 'image/webp'],
    ['524946461a00000057415645', null],
    ['3c7376672078', null],
    ['', null],
  ])('is identified by its bytes: %s', async (hex, type) => {
    expect((await images).mediaTypeOf(new Uint8Array(Buffer.from(hex, 'hex')))).toBe(type);
  });

  it('may be sent with a message unless there are too many, or too large ones', async () => {
    const { tooMany } = await images;
    const image = { mediaType: 'image/png', data: 'x' };
    const pdf = { mediaType: 'application/pdf', data: 'x' };
    expect(tooMany([...Array(100).fill(image), ...Array(20).fill(pdf)])).toBeNull();
    expect(tooMany(Array(21).fill(pdf))).toContain('20 documents');
    expect(tooMany(Array(101).fill(image))).toContain('100 images');
    expect(tooMany([{ ...image, data: 'x'.repeat(15_500_001) }])).toContain('MB');
  });

  it.each([
    ['a text', 'Über', null],
    ['an empty text', ' \n', 'is empty'],
    ['a program', '\u0000\u0001', 'is neither an image nor a PDF or a text'],
    ['a PDF', '%PDF-1.7 … /Encrypted startxref', null],
    ['a PDF after other bytes', `${'\u0000'.repeat(500)}%PDF-1.7 startxref`, null],
    ['a text about PDFs', 'if head.startswith("%PDF-"):', null],
    ['a cut PDF', '%PDF-1.7 …', 'is not a whole PDF: its end is missing'],
    ['an encrypted PDF', '%PDF-1.7 /Encrypt 5 0 R startxref', 'is encrypted: remove its password, or its protection'],
  ])('or another file is checked before it is sent: %s', async (_kind, content, fault) => {
    const { buffer } = new Uint8Array(Buffer.from(content));
    expect((await images).documentFault(buffer)).toBe(fault);
  });

  it.each([0, 1, 2, 3, 4, 1000])('or another file is shown with its size: %d bytes', async (size) => {
    expect((await images).sizeOf({ data: Buffer.alloc(size).toString('base64') })).toBe(size);
  });

  it('or another file is named in an error of the service', async () => {
    const { fileNaming } = await consolePart<{
      fileNaming(files: readonly object[]): (message: string) => string;
    }>('ask/turn.mjs');
    const naming = fileNaming([
      { name: 'photo.png', mediaType: 'image/png', data: '' },
      { name: 'a.txt', mediaType: 'text/plain', data: '' },
      { name: 'report.pdf', mediaType: 'application/pdf', data: '' },
    ]);
    expect(naming('files.1: has more than 100 pages')).toBe('“report.pdf” has more than 100 pages');
    expect(naming('images.0.data: must be base64')).toBe('“photo.png” must be base64');
    for (const other of ['files.7: is no PDF', 'model: files.0: x']) expect(naming(other)).toBe(other);
  });
});

describe('A pause of the page', () => {
  interface Clock {
    delay(clock: Pick<FakeClock, 'after'>, ms: number, signal: AbortSignal): Promise<void>;
  }
  const part = consolePart<Clock>('base/page-clock.mjs');

  it('ends after its time', async () => {
    const clock = new FakeClock();
    const paused = (await part).delay(clock, 100, new AbortController().signal);
    await clock.advance(100);
    expect(await paused).toBeUndefined();
  });

  it('fails at once if its signal aborts, or has aborted before, and leaves no timer', async () => {
    const clock = new FakeClock();
    const leaving = new AbortController();
    const paused = (await part).delay(clock, 100, leaving.signal);
    leaving.abort(new Error('the user has left'));
    await expect(paused).rejects.toThrow('the user has left');
    await expect((await part).delay(clock, 100, leaving.signal)).rejects.toThrow('the user has left');
    expect(clock.pending).toBe(0);
  });
});

describe('The form of a key', () => {
  interface Rights {
    optionsIn(entered: FormData, listed?: object): object;
  }
  const rights = consolePart<Rights>('keys/rights.mjs');
  const listed = {
    scopes: ['chat', 'ask'],
    group: null,
    tokens: '9/day',
    cost: null,
    rate: '6/60',
    expires: '2030-01-01',
  };

  function formOf(fields: Readonly<Record<string, string>>, ...scopes: readonly string[]): FormData {
    const form = new FormData();
    for (const [name, text] of Object.entries(fields)) form.append(name, text);
    for (const scope of scopes) form.append('scopes', scope);
    return form;
  }

  it('changes only what the user has changed', async () => {
    const { optionsIn } = await rights;
    const fields = { group: '', tokens: '9/day', cost: '', rate: '7/60', expires: '' };
    expect(optionsIn(formOf(fields, 'ask', 'chat'), listed)).toEqual({ rate: '7/60', expires: null });
    expect(optionsIn(formOf({ ...fields, rate: '6/60', expires: '2030-01-01' }, 'ask'), listed)).toEqual({
      scopes: ['ask'],
    });
  });

  it('sets what is not empty for a new key', async () => {
    const { optionsIn } = await rights;
    const fields = { group: ' lab ', tokens: '', cost: '', rate: '', expires: '' };
    expect(optionsIn(formOf(fields, 'ask', 'chat'))).toEqual({ group: 'lab', scopes: ['ask', 'chat'] });
    expect(optionsIn(formOf({ expires: '2030-01-01' }))).toEqual({ expires: '2030-01-01' });
  });
});
