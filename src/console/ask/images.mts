import { html } from 'htm/preact';
import { bytesText } from '../base/format.mjs';
import { Icon } from '../ui/controls.mjs';
import type { AttachedImage } from './turn.mjs';

/** First bytes of each image type that the API accepts, in hexadecimal. */
const signatures: readonly (readonly [mediaType: string, begin: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^47494638(37|39)61/],
  ['image/webp', /^52494646.{8}57454250/],
];

/** Media types for the file input. */
export const imageTypesText = signatures.map(([mediaType]) => mediaType).join(',');

const maxImages = 100;
/**
 * Maximum size of a message's images in base64. The default limit of the service for a request is 16 MB, which
 * leaves 0.5 MB for the text.
 */
const maxImageBytes = 15_500_000;
const longestSignatureBytes = 12;

/**
 * Returns the media type by the first bytes of a file, whatever its name is; null if the API does not accept the file.
 */
export function mediaTypeOf(begin: Uint8Array): string | null {
  const hex = Array.from(begin, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return signatures.find(([, signature]) => signature.test(hex))?.[0] ?? null;
}

/** Returns why the images do not fit into one message; null if they do. */
export function tooMany(images: readonly AttachedImage[]): string | null {
  if (images.length > maxImages) return `A message takes ${maxImages} images at most.`;
  const bytes = images.reduce((sum, { data }) => sum + data.length, 0);
  if (bytes <= maxImageBytes) return null;
  return `Together these images take ${bytesText(bytes)} as they are sent; ${bytesText(maxImageBytes)} fit into a message.`;
}

/** Images read from files, and a sentence for each file that was rejected. */
interface ReadImages {
  readonly images: readonly AttachedImage[];
  readonly faults: readonly string[];
}

export async function readImages(files: readonly File[]): Promise<ReadImages> {
  const read = await Promise.all(files.map(readImage));
  return {
    images: read.filter((one) => typeof one !== 'string'),
    faults: read.filter((one) => typeof one === 'string'),
  };
}

async function readImage(file: File): Promise<AttachedImage | string> {
  if (file.size > maxImageBytes) return `${file.name} is too large: ${bytesText(file.size)}.`;
  try {
    const begin = new Uint8Array(await file.slice(0, longestSignatureBytes).arrayBuffer());
    const mediaType = mediaTypeOf(begin);
    if (mediaType === null) return `${file.name} is not a PNG, JPEG, GIF or WebP image.`;
    return { name: file.name, mediaType, data: await base64Of(file) };
  } catch {
    return `${file.name} cannot be read.`;
  }
}

function base64Of(file: File): Promise<string> {
  const reader = new FileReader();
  return new Promise((resolve, reject) => {
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

interface ImageStripProps {
  readonly images: readonly AttachedImage[];
  /** Called to remove an image. Without it, the images have no such button. */
  readonly onRemove?: (image: AttachedImage) => void;
}

/** Shows small pictures of the images of a message. */
export function ImageStrip({ images, onRemove }: ImageStripProps) {
  if (images.length === 0) return null;
  return html`<ul class="images">
    ${images.map(
      (image) => html`<li>
        <img src=${`data:${image.mediaType};base64,${image.data}`} alt=${image.name} />
        ${
          onRemove &&
          html`<button
            type="button"
            class="button icon"
            aria-label=${`Remove ${image.name}`}
            onClick=${() => onRemove(image)}
          ><${Icon} name="close" /></button>`
        }
      </li>`,
    )}
  </ul>`;
}
