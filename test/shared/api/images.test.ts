import { imageFault, leadingImages, maxImages, requestImages } from '../../../src/shared/api/images.js';
import type { Image } from '../../../src/shared/job.js';

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

describe('an image', () => {
  it.each(types)('of the type %s begins as such a file does, and no other', (type) => {
    const fits = types.map((other) => imageFault(other, fileOf(type)) === null);
    expect(fits).toEqual(types.map((other) => other === type));
  });

  it.each([
    ['an older GIF', 'image/gif', Buffer.from('GIF87a'), null],
    ['a text', 'image/png', Buffer.from('PNG? Not at all.'), 'is not what image/png begins with'],
    ['less than a file begins with', 'image/png', Buffer.from([0x89, 0x50, 0x4e]), 'is not what image/png begins with'],
    ['another RIFF file', 'image/webp', Buffer.from('RIFF1234WAVEfmt '), 'is not what image/webp begins with'],
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
  ])('must be base64: %j', (data) => {
    expect(imageFault('image/png', data)).toBe('must be base64');
  });

  it('of 32 MB is looked at in no time', () => {
    const data = fileOf('image/png', Buffer.alloc(32 * 1024 ** 2));
    const startedMs = performance.now();
    expect(imageFault('image/png', data)).toBeNull();
    expect(performance.now() - startedMs).toBeLessThan(2000);
  });
});

describe('the images of a request', () => {
  const png = { media_type: 'image/png', data: fileOf('image/png') };

  it('stand in front of its text', () => {
    expect(leadingImages(requestImages.parse([png]))).toEqual([{ mediaType: 'image/png', data: png.data, at: 0 }]);
    expect(leadingImages(undefined)).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['no list', png, 'must be a list'],
    ['too many', Array.from({ length: maxImages + 1 }, () => png), `must be ${maxImages} at most`],
    [
      'an unknown type',
      [{ ...png, media_type: 'image/svg+xml' }],
      'must be one of image/png, image/jpeg, image/gif, image/webp',
    ],
    ['no data', [{ media_type: 'image/png' }], 'must be a string'],
    ['a text', [{ ...png, data: 'aGVsbG8=' }], 'is not what image/png begins with'],
    ['an unknown type and broken data', [{ media_type: 5, data: '?' }], 'must be one of'],
    ['null', [null], ''],
  ])('are refused where they are %s', (_, images, message) => {
    const { success, error } = requestImages.safeParse(images);
    expect(success).toBe(false);
    expect(error?.issues[0]?.message).toContain(message);
  });

  it('have no fields that are not known', () => {
    expect(requestImages.safeParse([{ ...png, url: 'http://example.com' }]).success).toBe(false);
  });
});
