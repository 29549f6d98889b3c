import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ModelEntry } from '../../shared/api/models.js';
import { bytesText } from '../base/format.mjs';
import { documentTable } from '../base/tables.mjs';
import { Icon } from '../ui/controls.mjs';
import { noImages, takesImages } from './draft.mjs';
import { type AttachedFile, isDocument } from './turn.mjs';

/** First bytes of each image type that the API accepts, in hexadecimal. */
const signatures: readonly (readonly [mediaType: string, begin: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^47494638(37|39)61/],
  ['image/webp', /^52494646.{8}57454250/],
];

/** Returns the types of files that the file input offers. */
function fileTypesText(takesImages: boolean): string {
  const documents = Object.values(documentTable).flatMap(({ offered }): readonly string[] => offered);
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

async function readFiles(files: readonly File[]): Promise<ReadFiles> {
  const read = await Promise.all(files.map(readFile));
  return {
    attached: read.filter((one) => typeof one !== 'string'),
    faults: read.filter((one) => typeof one === 'string'),
  };
}

async function readFile(file: File): Promise<AttachedFile | string> {
  if (file.size > maxImageBytes) return `${file.name} is too large: ${bytesText(file.size)}.`;
  try {
    const content = await file.arrayBuffer();
    const image = mediaTypeOf(new Uint8Array(content.slice(0, longestSignatureBytes)));
    if (image === null && file.type.startsWith('image/')) return `${file.name} is not a PNG, JPEG, GIF or WebP image.`;
    const fault = image === null ? documentFault(content) : await imageFault(file);
    if (fault !== null) return `${file.name} ${fault}.`;
    return { name: file.name, mediaType: image ?? documentTypeOf(content), data: await base64Of(file) };
  } catch {
    return `${file.name} cannot be read.`;
  }
}

/** Returns the fault of an image, which the browser must be able to draw; null for none. */
async function imageFault(file: File): Promise<string | null> {
  return createImageBitmap(file).then(
    (bitmap) => {
      bitmap.close();
      return null;
    },
    () => 'is a damaged image',
  );
}

/** Bytes in which the header of a PDF begins. */
const pdfHeadBytes = 1024;

function latin1(content: ArrayBuffer): string {
  return new TextDecoder('latin1').decode(content);
}

/** Whether a file is a PDF. Other bytes may stand before its header; a text that only mentions the header is none. */
function isPdf(content: ArrayBuffer): boolean {
  const at = latin1(content.slice(0, pdfHeadBytes)).indexOf('%PDF-');
  return at === 0 || (at > 0 && textFault(content) !== null);
}

/** Returns the type of a document by its first bytes. */
function documentTypeOf(content: ArrayBuffer): string {
  if (isPdf(content)) return 'application/pdf';
  const head = latin1(content.slice(0, longestSignatureBytes));
  const isOf = (begin: string | null) => begin !== null && head.startsWith(begin);
  return Object.entries(documentTable).find(([, { begin }]) => isOf(begin))?.[0] ?? 'text/plain';
}

/** Returns the fault of a document that the service would refuse, in its words; null for none. */
export function documentFault(content: ArrayBuffer): string | null {
  const type = documentTypeOf(content);
  if (type !== 'application/pdf') return type === 'text/plain' ? textFault(content) : null;
  const text = latin1(content);
  if (!text.includes('startxref')) return 'is not a whole PDF: its end is missing';
  const isEncrypted = /\/Encrypt\s*(?:\d+\s+\d+\s+R\b|<<)/.test(text);
  return isEncrypted ? 'is encrypted: remove its password, or its protection' : null;
}

function textFault(content: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content);
    if (text.trim() === '') return 'is empty';
    return text.includes('\0') ? noDocument : null;
  } catch {
    return noDocument;
  }
}

const documentNames = Object.values(documentTable).map(({ name }) => name);
const noDocument = `is neither an image nor a ${documentNames.join(' or a ')}`;

function base64Of(file: File): Promise<string> {
  const reader = new FileReader();
  return new Promise((resolve, reject) => {
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

type AddFiles = (files: readonly File[]) => void;

interface FilesInput {
  readonly files: readonly AttachedFile[];
  readonly model: ModelEntry | undefined;
  /** Selected model: the faults disappear when it changes. */
  readonly selection: string | null;
  readonly onChange: (files: readonly AttachedFile[]) => void;
}

/** Returns a function that adds files to a message, and a sentence for each file that was rejected. */
export function useFiles({ files, model, selection, onChange }: FilesInput): [AddFiles, readonly string[]] {
  const [faults, setFaults] = useState<readonly string[]>([]);
  const current = useRef(files);
  current.current = files;
  useEffect(() => setFaults([]), [selection]); // on a change of the selection, not when the list of models arrives
  const add = async (added: readonly File[]) => {
    const { attached, faults: unreadable } = await readFiles(added);
    const usable = takesImages(model) ? attached : attached.filter(isDocument);
    const all = [...current.current, ...usable];
    const fault = tooMany(all);
    const refused = usable.length < attached.length ? [noImages(model)] : [];
    setFaults([...unreadable, ...refused, ...(fault === null ? [] : [fault])]);
    if (fault === null) onChange(all);
  };
  return [(added) => void add(added), faults];
}

/** Accepts dropped files. Otherwise the browser would open them instead of the page. */
export function useDrop(addFiles: AddFiles) {
  const [isOver, setOver] = useState(false);
  return {
    'data-drop': isOver ? '' : undefined,
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      addFiles([...(event.dataTransfer?.files ?? [])]);
    },
  };
}

/** Returns a function that adds the files of a paste, and leaves a pasted text to the field. */
export function pasteFiles(addFiles: AddFiles): (event: ClipboardEvent) => void {
  return (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    addFiles(files);
  };
}

/** Returns a hidden input for files, and a function that opens its dialog. */
export function useFileDialog(addFiles: AddFiles, model: ModelEntry | undefined) {
  const input = useRef<HTMLInputElement>(null);
  const choose = () => {
    addFiles([...(input.current?.files ?? [])]);
    if (input.current) input.current.value = ''; // allows the user to choose the same file again
  };
  const types = fileTypesText(takesImages(model));
  const field = html`<input ref=${input} type="file" accept=${types} multiple hidden onChange=${choose} />`;
  return [field, () => input.current?.click()] as const;
}

/** Shows why files were rejected. */
export function FileFaults({ faults }: { readonly faults: readonly string[] }) {
  return html`<div role="alert">${faults.map((fault) => html`<p class="fault">${fault}</p>`)}</div>`;
}

/** Returns the number of bytes that the base64 stands for. */
export function sizeOf({ data }: Pick<AttachedFile, 'data'>): number {
  const padding = data.slice(-2).split('=').length - 1;
  return (data.length * 3) / 4 - padding;
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
            ? html`<span class="document"><${Icon} name="page" /><span>${file.name}</span><small>${bytesText(sizeOf(file))}</small></span>`
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
