import { html } from 'htm/preact';
import { bytesText } from '../base/format.mjs';
import { Icon } from '../ui/controls.mjs';
import { type AttachedFile, isDocument } from './turn.mjs';

/** First bytes of each image type that the API accepts, in hexadecimal. */
const signatures: readonly (readonly [mediaType: string, begin: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^47494638(37|39)61/],
  ['image/webp', /^52494646.{8}57454250/],
];

/** Returns the types of files that the file input offers. */
export function fileTypesText(takesImages: boolean): string {
  const documents = ['application/pdf', 'text/*', ...['json', 'md', 'xml', 'yaml', 'yml'].map((end) => `.${end}`)];
  return [...(takesImages ? signatures.map(([mediaType]) => mediaType) : []), ...documents].join(',');
}

const maxImages = 100;
const maxDocuments = 20;
/**
 * Maximum size of a message's images and documents in base64. The default limit of the service for a request is 16 MB, which
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

/** Returns why the files do not fit into one message; null if they do. */
export function tooMany(files: readonly AttachedFile[]): string | null {
  const documents = files.filter(isDocument).length;
  if (files.length - documents > maxImages) return `A message takes ${maxImages} images at most.`;
  if (documents > maxDocuments) return `A message takes ${maxDocuments} documents at most.`;
  const bytes = files.reduce((sum, { data }) => sum + data.length, 0);
  if (bytes <= maxImageBytes) return null;
  return `Together these files take ${bytesText(bytes)} as they are sent; ${bytesText(maxImageBytes)} fit into a message.`;
}

/** Images and documents, and a sentence for each file that was rejected. */
interface ReadFiles {
  readonly attached: readonly AttachedFile[];
  readonly faults: readonly string[];
}

export async function readFiles(files: readonly File[]): Promise<ReadFiles> {
  const read = await Promise.all(files.map(readFile));
  return {
    attached: read.filter((one) => typeof one !== 'string'),
    faults: read.filter((one) => typeof one === 'string'),
  };
}

async function readFile(file: File): Promise<AttachedFile | string> {
  if (file.size > maxImageBytes) return `${file.name} is too large: ${bytesText(file.size)}.`;
  try {
    const begin = new Uint8Array(await file.slice(0, longestSignatureBytes).arrayBuffer());
    const mediaType = mediaTypeOf(begin);
    if (mediaType === null && file.type.startsWith('image/'))
      return `${file.name} is not a PNG, JPEG, GIF or WebP image.`;
    const type = mediaType ?? (isPdf(begin) ? 'application/pdf' : 'text/plain');
    if (type === 'text/plain' && !isText(await file.arrayBuffer()))
      return `${file.name} is neither an image nor a PDF or a text.`;
    return { name: file.name, mediaType: type, data: await base64Of(file) };
  } catch {
    return `${file.name} cannot be read.`;
  }
}

function isPdf(begin: Uint8Array): boolean {
  return String.fromCharCode(...begin.slice(0, 5)) === '%PDF-';
}

/** Whether the content of a file is text in UTF-8. */
function isText(content: ArrayBuffer): boolean {
  try {
    return !new TextDecoder('utf-8', { fatal: true }).decode(content).includes('\0');
  } catch {
    return false;
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

interface FileStripProps {
  readonly files: readonly AttachedFile[];
  /** Called to remove a file. Without it, the files have no such button. */
  readonly onRemove?: (file: AttachedFile) => void;
}

/** Shows small pictures of the images of a message, and the names and sizes of its documents. */
export function FileStrip({ files, onRemove }: FileStripProps) {
  if (files.length === 0) return null;
  return html`<ul class="images">
    ${files.map(
      (file) => html`<li>
        ${
          isDocument(file)
            ? html`<span class="document"><${Icon} name="page" /><span>${file.name}</span><small>${bytesText((file.data.length * 3) / 4)}</small></span>`
            : html`<img src=${`data:${file.mediaType};base64,${file.data}`} alt=${file.name} />`
        }
        ${
          onRemove &&
          html`<button
            type="button"
            class="button icon"
            aria-label=${`Remove ${file.name}`}
            onClick=${() => onRemove(file)}
          ><${Icon} name="close" /></button>`
        }
      </li>`,
    )}
  </ul>`;
}
