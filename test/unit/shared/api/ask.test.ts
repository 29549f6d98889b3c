import {
  answerSchema,
  effort,
  imageFault,
  maxImages,
  maxSchemaBytes,
  requestImages,
  schemaText,
  usageOf,
} from '../../../../src/shared/api/ask.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { allEfforts, type Image } from '../../../../src/shared/job.js';
import { processorMs } from '../../../support/processes/processor-time.js';

const beginnings: Readonly<Record<Image['mediaType'], Buffer>> = {
  'image/png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  'image/jpeg': Buffer.from([0xff, 0xd8, 0xff, 0xe0]),
  'image/gif': Buffer.from('GIF89a'),
  'image/webp': Buffer.from('RIFF\n\0\x80\xffWEBPVP8 ', 'latin1'),
};
const types = Object.keys(beginnings) as Image['mediaType'][];

function fileOf(type: Image['mediaType'], rest = Buffer.alloc(40)): string {
  return Buffer.concat([beginnings[type], rest]).toString('base64');
}

describe('An image', () => {
  it.each(types)('of the type %s must start like such a file', (type) => {
    const fits = types.map((other) => imageFault(other, fileOf(type)) === null);
    expect(fits).toEqual(types.map((other) => other === type));
  });

  it.each([
    ['an older GIF', 'image/gif', Buffer.from('GIF87a'), null],
    ['a text', 'image/png', Buffer.from('PNG? Not at all.'), 'is not a file of the type image/png'],
    [
      'less than a file begins with',
      'image/png',
      Buffer.from([0x89, 0x50, 0x4e]),
      'is not a file of the type image/png',
    ],
    ['another RIFF file', 'image/webp', Buffer.from('RIFF1234WAVEfmt '), 'is not a file of the type image/webp'],
  ] as const)('that is %s: %s', (_, type, bytes, fault) => {
    expect(imageFault(type, bytes.toString('base64'))).toBe(fault);
  });

  it.each([
    '',
    '====',
    'A===',
    fileOf('image/png').slice(1),
    `${fileOf('image/png')}\n`,
    ` ${fileOf('image/png')}`,
    fileOf('image/png').replaceAll('A', '-'),
    `data:image/png;base64,${fileOf('image/png')}`,
    `${fileOf('image/png')}😀😀`,
  ])('must be valid base64: %j', (data) => {
    expect(imageFault('image/png', data)).toBe('must be base64');
  });

  it('of 32 MB is checked quickly', () => {
    const data = fileOf('image/png', Buffer.alloc(32 * 1024 ** 2));
    const startedMs = processorMs();
    expect(imageFault('image/png', data)).toBeNull();
    expect(processorMs() - startedMs).toBeLessThan(2000);
  });
});

describe('The images of a request', () => {
  const png = { media_type: 'image/png', data: fileOf('image/png') };

  it('have their bytes, or the id of a file', () => {
    const images = [png, { file_id: 'file-a' }];
    expect(requestImages.parse(images)).toEqual(images);
  });

  it.each<[string, unknown, string]>([
    ['no list', png, 'must be a list'],
    ['too many', Array.from({ length: maxImages + 1 }, () => png), `must be at most ${maxImages} images`],
    [
      'an unknown type',
      [{ ...png, media_type: 'image/svg+xml' }],
      'must be one of image/png, image/jpeg, image/gif, image/webp',
    ],
    ['no data', [{ media_type: 'image/png' }], 'must be sent'],
    ['no type', [{ data: png.data }], 'must be sent'],
    ['a file and its data', [{ file_id: 'file-a', data: png.data }], 'must not be sent together with file_id'],
    ['a file and a type', [{ file_id: 'file-a', media_type: 'image/png' }], 'must not be sent together with file_id'],
    ['a text', [{ ...png, data: 'aGVsbG8=' }], 'is not a file of the type image/png'],
    ['an unknown type and broken data', [{ media_type: 5, data: '?' }], 'must be one of'],
    ['null', [null], ''],
  ])('are rejected if they are %s', (_, images, message) => {
    const { success, error } = requestImages.safeParse(images);
    expect(success).toBe(false);
    expect(error?.issues[0]?.message).toContain(message);
  });

  it('have only known fields', () => {
    expect(requestImages.safeParse([{ ...png, url: 'http://example.com' }]).success).toBe(false);
  });
});

describe('The schema in a job', () => {
  it.each([{ type: 'object' }, { properties: { a: {} } }, { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } }])(
    'is the JSON of an object: %j',
    (schema) => {
      expect(schemaText(schema, 'schema')).toBe(JSON.stringify(schema));
    },
  );

  it.each<[string, Record<string, unknown>, string]>([
    ['of another type', { type: 'array' }, 'must have an object at its root: "type": "object"'],
    ['of several types', { type: ['object', 'null'] }, 'must have an object at its root: "type": "object"'],
    ['of anything', {}, 'must have an object at its root: "type": "object"'],
    ['too large', { type: 'object', title: 'ä'.repeat(maxSchemaBytes / 2) }, 'must be at most 65536 bytes of JSON'],
  ])('is rejected if it is %s', (_, schema, message) => {
    const fault = new RelayError('validation_error', `response_format.schema: ${message}`);
    expect(() => schemaText(schema, 'response_format.schema')).toThrow(fault);
  });

  it('is rejected if it is nested too deeply to be serialized', () => {
    let schema: Record<string, unknown> = {};
    for (let depth = 0; depth < 100_000; depth++) schema = { items: schema };
    expect(() => schemaText({ type: 'object', ...schema }, 'schema')).toThrow('schema: is nested too deeply');
  });
});

describe('The fields of a request', () => {
  it.each([[[]], ['{}'], [null], [5]])('require an object as a schema: not %j', (value) => {
    expect(answerSchema.safeParse(value).error?.issues[0]?.message).toBe('must be a JSON Schema, an object');
  });

  it('allow three efforts', () => {
    expect(allEfforts.map((value) => effort.safeParse(value).success)).toEqual(allEfforts.map(() => true));
    expect(effort.safeParse('huge').error?.issues[0]?.message).toBe('must be one of low, medium, high, xhigh, max');
  });
});

describe('The usage in an answer', () => {
  it('is null if the CLI reports nothing', () => {
    expect(usageOf({ inputTokens: null, outputTokens: null, costUsd: null })).toBeNull();
  });

  it('contains the values that the CLI reports, and the cost only if there is one', () => {
    expect(usageOf({ inputTokens: 1, outputTokens: null, costUsd: null })).toEqual({
      input_tokens: 1,
      output_tokens: null,
    });
    expect(usageOf({ inputTokens: null, outputTokens: null, costUsd: 0 })).toEqual({
      input_tokens: null,
      output_tokens: null,
      cost_usd: 0,
    });
  });
});
