import { createHash } from 'node:crypto';
import type { Image, Message } from '../../../../src/shared/job.js';
import {
  chained,
  chainedInSlices,
  chainId,
  chainStart,
  chainStartInSlices,
  collapsedBlanks,
} from '../../../../src/shared/text/chain.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };
const message: Message = { role: 'user', text: 'Hello' };

describe('A chain of hashes', () => {
  it('is the same for the same conversation, and reveals nothing of it', () => {
    const ends = [1, 2].map(() => chained(chainStart('Be brief.', null), { ...message, images: [image] }));
    expect(ends[0]).toBe(ends[1]);
    expect(ends[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  it('treats no images and an empty list of images alike', () => {
    expect(chained('0', { ...message, images: [] })).toBe(chained('0', message));
  });

  it('ignores the whitespace around an answer, because clients may change it', () => {
    const answer: Message = { role: 'assistant', text: ' \n\n Well,\n\n  hello \u00a0\n' };
    expect(chained('0', answer)).toBe(chained('0', { ...answer, text: 'Well,\n\n  hello' }));
    expect(chained('0', answer)).toBe(chained('0', { ...answer, text: 'Well,\nhello' }));
    expect(chained('0', answer)).not.toBe(chained('0', { ...answer, text: 'Well,hello' }));
  });

  it.each<[string, Message]>([
    ['another text', { ...message, text: 'Hello ' }],
    ['another role', { ...message, role: 'assistant' }],
    ['an image', { ...message, images: [image] }],
    ['another image', { ...message, images: [{ ...image, data: 'AAAB' }] }],
    ['an image of another type', { ...message, images: [{ ...image, mediaType: 'image/gif' }] }],
    ['an image elsewhere', { ...message, images: [{ ...image, at: 5 }] }],
    ['two images', { ...message, images: [image, image] }],
    ['the data of two images in one', { ...message, images: [{ ...image, data: 'AAAAAAAA' }] }],
  ])('is different with %s', (_, other) => {
    const ends = [message, { ...message, images: [{ ...image, data: 'BBBB' }] }, other].map((each) =>
      chained('0', each),
    );
    expect(new Set(ends).size).toBe(3);
  });

  it('is different if a document must be cited, or has a context', () => {
    const document = { mediaType: 'application/pdf', data: 'AAAA', at: 0, name: '', digest: 'x' } as const;
    const others = [{ citations: true }, { context: 'a' }, { context: 'b' }] as const;
    const ends = [document, ...others.map((other) => ({ ...document, ...other }))].map((each) =>
      chained('0', { ...message, images: [each] }),
    );
    expect(new Set(ends).size).toBe(4);
  });

  it('is different if the same texts are split differently', () => {
    const one = ['a', 'bc'].map((text): Message => ({ role: 'user', text })).reduce(chained, '0');
    const other = ['ab', 'c'].map((text): Message => ({ role: 'user', text })).reduce(chained, '0');
    expect(one).not.toBe(other);
  });

  it('starts with the system text and the schema, which are distinguished', () => {
    const starts = [chainStart(null, null), chainStart('', null), chainStart('{}', null), chainStart(null, '{}')];
    expect(new Set(starts).size).toBe(4);
  });

  it('has a different name for each client and each model', () => {
    const ids = [
      chainId('0', 'key a', null),
      chainId('0', 'key b', null),
      chainId('0', 'key a', 'm'),
      chainId('1', 'key a', null),
    ];
    expect(new Set([...ids, chainId('0', 'key a', 'null')]).size).toBe(5);
  });

  it('includes calls and results, but neither the order of keys nor of results', () => {
    const call = (input: string, id = '1'): Message => ({
      role: 'assistant',
      text: '',
      calls: [{ id, name: 'a', input }],
    });
    expect(chained('0', call('{"a": 1, "b": {"c": 2, "d": 3}}'))).toBe(chained('0', call('{"b":{"d":3,"c":2},"a":1}')));
    expect(chained('0', call('{"a":1}'))).not.toBe(chained('0', call('{"a":2}')));
    expect(chained('0', call('{}'))).not.toBe(chained('0', call('{}', '2')));
    expect(chained('0', call('no JSON'))).not.toBe(chained('0', call('{}')));
    const results = ['1', '2'].map((id) => ({ id, text: `${id} `, isError: false }));
    const user = (parts: Message['results']): Message => ({ role: 'user', text: '', ...(parts && { results: parts }) });
    expect(chained('0', user(results))).toBe(chained('0', user(results.toReversed())));
    expect(chained('0', user(results))).not.toBe(chained('0', user(results.slice(1))));
    expect(chained('0', user(results))).not.toBe(
      chained('0', user(results.map((each) => ({ ...each, isError: true })))),
    );
  });

  const long = 'a "quoted" \n漢 😀 \\ '.repeat(100_000);
  const call = { id: 'c', name: 'a', input: JSON.stringify({ long }) };
  const result = { id: 'c', text: `x${long}x`, isError: false };

  it('is the hash of the whole texts, however long they are', () => {
    const parts = [
      '0\0user\0',
      JSON.stringify([result.id, result.isError, result.text]),
      `image/png\0${image.at}\0${long}\0`,
    ];
    const asked = createHash('sha256')
      .update([...parts, long].join(''))
      .digest('hex');
    const question: Message = { role: 'user', text: long, results: [result], images: [{ ...image, data: long }] };
    expect(chained('0', question)).toBe(asked);
    const answered = `1\0assistant\0${long.replace(/\s+/g, ' ').trim()}\0${JSON.stringify(['c', 'a', call.input])}`;
    const answer: Message = { role: 'assistant', text: long, calls: [call] };
    expect(chained('1', answer)).toBe(createHash('sha256').update(answered).digest('hex'));
  });

  it('starts with the hash of the whole system text, however long it is', async () => {
    const tool = { name: 'a', description: 'b', schema: '{"type":"object"}' };
    const json = JSON.stringify([long, '{}', [['a', 'b', tool.schema]], 'search']);
    const start = createHash('sha256').update(json).digest('hex');
    expect(chainStart(long, '{}', [tool], true)).toBe(start);
    expect(await chainStartInSlices(long, '{}', [tool], true)).toBe(start);
    expect(chainStart(null, null)).toBe(createHash('sha256').update('[null,null]').digest('hex'));
  });

  it('is built in slices, between which the event loop handles other events', async () => {
    const messages = Array.from({ length: 2000 }, (): Message => message);
    messages.push({ role: 'user', text: long, results: [result] }, { role: 'assistant', text: long, calls: [call] });
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    count();
    const chain = await chainedInSlices('0', messages);
    isDone = true;
    expect(chain).toBe(messages.reduce(chained, '0'));
    expect(turns).toBeGreaterThan(20);
  });

  it('treats the tools as a set', () => {
    const [a, b] = ['a', 'b'].map((name) => ({ name, description: '', schema: '{"type":"object"}' }));
    if (a === undefined || b === undefined) throw new Error('there are two');
    expect(chainStart(null, null, [a, b])).toBe(chainStart(null, null, [b, a]));
    expect(chainStart(null, null, [a])).not.toBe(chainStart(null, null, [a, b]));
    expect(chainStart(null, null, [])).toBe(chainStart(null, null));
    expect(chainStart(null, null, [a])).not.toBe(chainStart(null, null, [{ ...a, description: 'x' }]));
  });
});

function collapsed(text: string): string {
  return Buffer.concat([...collapsedBlanks(text)]).toString();
}

describe('The text with a single space for each run of whitespace', () => {
  const blanks = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter((each) =>
    /\s/.test(each),
  );

  it.each([
    '',
    ' ',
    'a',
    ' a  b\n\nc ',
    `a${blanks.join('')}b`,
    blanks.map((each) => `${each}x`).join(''),
    'é\u00a1\u2010\u200b\u3001\ufefe\u1681漢👩',
    `${'x'.repeat(65_535)}👩 y`,
    `${'x'.repeat(65_536)}  ${' '.repeat(65_536)} y${' '.repeat(70_000)}`,
    ' '.repeat(200_000),
    `${'a '.repeat(40_000)}\ud800 b \udc00`,
  ])('equals the result of the regular expression: %#', (text) => {
    expect(collapsed(text)).toBe(Buffer.from(text.replace(/\s+/g, ' ').trim()).toString());
  });
});
