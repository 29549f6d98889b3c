import { z } from 'zod';
import { type Image, imageTypes } from '../job.js';

type ImageType = Image['mediaType'];

/** What the first bytes of a file of each type are, in hexadecimal. */
const signatures: Readonly<Record<ImageType, RegExp>> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/gif': /^47494638(37|39)61/,
  'image/webp': /^52494646.{8}57454250/,
};

/** Base64 of the longest signature, and more. */
const beginLength = 32;

/** One look for a character that is none of its: a pattern for the whole text would go back over megabytes, until the stack ends. */
function isBase64(data: string): boolean {
  const padding = data.endsWith('==') ? 2 : Number(data.endsWith('='));
  return data.length > padding && data.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(data.slice(0, -padding || undefined));
}

/** What is wrong with an image; null where nothing is. A CLI would turn a broken one into a note to the model. */
export function imageFault(mediaType: ImageType, data: string): string | null {
  if (!isBase64(data)) return 'must be base64';
  const begin = Buffer.from(data.slice(0, beginLength), 'base64').toString('hex');
  return signatures[mediaType].test(begin) ? null : `is not what ${mediaType} begins with`;
}

export const imageType = z.enum(imageTypes, `must be one of ${imageTypes.join(', ')}`);

const requestImage = z
  .strictObject({
    media_type: imageType,
    data: z.string('must be a string').meta({ description: 'The file in base64.' }),
  })
  .superRefine(({ media_type, data }, context) => {
    const message = imageFault(media_type, data);
    if (message !== null) context.addIssue({ code: 'custom', path: ['data'], message });
  })
  .meta({ id: 'Image' });

export const maxImages = 100;

/** They stand before the text. */
export const requestImages = z
  .array(requestImage, 'must be a list')
  .max(maxImages, `must be ${maxImages} at most`)
  .meta({ description: 'Images for the model, before the text. 400 where the model CLI takes none.' });

/** As a job carries them, in front of its text. */
export function leadingImages(images: z.infer<typeof requestImages> = []): Image[] {
  return images.map(({ media_type: mediaType, data }) => ({ mediaType, data, at: 0 }));
}
