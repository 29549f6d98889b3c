import { inflateSync } from 'node:zlib';
import { isPdf } from '../../shared/tables/document-types.js';

/** Largest number of pages of a PDF. */
const maxPages = 100;

/** Reads the number of pages of a PDF, or what makes it unusable. */
export type PdfFinding = { readonly pages: number } | { readonly fault: string };

/**
 * Inspects a PDF without rendering it. The number of pages is the largest `/Count` of a page tree, because the root of
 * the tree counts all pages. In newer files, page trees are in compressed object streams, which the function reads too.
 */
export function inspectPdf(file: Buffer): PdfFinding {
  if (!isPdf(file)) return { fault: 'is not a PDF' };
  if (!file.includes('startxref')) return { fault: 'is not a whole PDF: its end is missing' };
  if (isEncrypted(file)) return { fault: 'is encrypted: remove its password, or its protection' };
  const streams = objectStreams(file);
  if (streams === null) return { fault: `has more than ${maxPages} pages, or they cannot be counted` };
  const pages = pagesIn([file, ...streams]);
  if (pages === 0) return { fault: 'is not a readable PDF: it has no pages' };
  if (pages > maxPages) return { fault: `has more than ${maxPages} pages` };
  return { pages };
}

/** Whether a trailer of the file refers to its encryption. The name alone may stand in a text. */
function isEncrypted(file: Buffer): boolean {
  return placesOf(file, '/Encrypt').some((at) => /^\/Encrypt\s*(?:\d+\s+\d+\s+R\b|<<)/.test(textAt(file, at, 40)));
}

/**
 * Number of page trees in the whole file, and of object streams, in which a file with few pages is certain to have all its
 * pages. They bound the time that a hostile file takes.
 */
const maxTrees = 300;
const maxStreams = 500;
/** Bytes that a dictionary of a page tree has before and after its type. A tree of 100 pages has fewer. */
const treeBytes = 2048;

/** Returns the largest number of pages that a page tree counts; 0 if no tree is found, infinity if too many are. */
function pagesIn(parts: readonly Buffer[]): number {
  let places = 0;
  let trees = 0;
  let most = 0;
  for (const objects of parts) {
    for (const at of placesOf(objects, '/Pages', maxPlaces - places)) {
      places++;
      if (!isTypeAt(objects, at, '/Pages')) continue;
      if (++trees > maxTrees) return Number.POSITIVE_INFINITY;
      most = Math.max(most, countIn(objects, at));
    }
  }
  return most;
}

/** Whether the name at this place is the value of a `/Type`. */
function isTypeAt(objects: Buffer, at: number, name: string): boolean {
  return (
    /\/Type\s*$/.test(textAt(objects, at - 16, Math.min(16, at))) &&
    !/^[^\s/<>[\]()]/.test(textAt(objects, at + name.length, 1))
  );
}

/** Returns the `/Count` in the dictionary around this place; 0 if the dictionary has no count. */
function countIn(objects: Buffer, at: number): number {
  const start = Math.max(0, at - treeBytes);
  const text = textAt(objects, start, 2 * treeBytes);
  const dictionary = text.slice(dictionaryStart(text, at - start), dictionaryEnd(text, at - start));
  const [, count = '0'] = /\/Count\s+(\d{1,10})(?!\s+\d+\s+R\b)/.exec(dictionary) ?? [];
  return Number(count);
}

/** Returns where the dictionary around this place begins. Reads each character once. */
function dictionaryStart(text: string, from: number): number {
  for (let at = from - 2, depth = 0; at >= 0; at--) {
    const pair = text.slice(at, at + 2);
    if (pair === '<<' && depth === 0) return at;
    if (pair !== '<<' && pair !== '>>') continue;
    depth += pair === '<<' ? -1 : 1;
    at--;
  }
  return 0;
}

/** Returns where the dictionary around this place ends. Reads each character once. */
function dictionaryEnd(text: string, from: number): number {
  for (let at = from, depth = 0; at < text.length; at++) {
    const pair = text.slice(at, at + 2);
    if (pair === '>>' && depth === 0) return at;
    if (pair !== '<<' && pair !== '>>') continue;
    depth += pair === '<<' ? 1 : -1;
    at++;
  }
  return text.length;
}

/** Bytes of one object stream, and of all of them, after their decompression. */
const maxStreamBytes = 2 * 1024 * 1024;
const maxStreamsBytes = 16 * 1024 * 1024;

/** Returns the decompressed object streams of a file; null if they are too many or too large. */
function objectStreams(file: Buffer): Buffer[] | null {
  const places = placesOf(file, '/ObjStm').filter((at) => isTypeAt(file, at, '/ObjStm'));
  if (places.length > maxStreams) return null;
  const streams: Buffer[] = [];
  let bytes = 0;
  let end = 0;
  for (const at of places) {
    const keyword = placeWithin(file, 'stream', at, treeBytes);
    if (keyword === null) continue;
    if (end < keyword) end = placeOrEnd(file, 'endstream', keyword); // each byte is searched once
    const packed = packedStream(file, keyword, end);
    const stream = inflated(packed);
    if (stream === 'too large') return null;
    // A broken stream may have been decompressed almost to its end.
    bytes += stream?.length ?? Math.min(maxStreamBytes, packed.length * maxExpansion);
    if (bytes > maxStreamsBytes) return null;
    if (stream !== null) streams.push(stream);
  }
  return streams;
}

/** Largest ratio by which zlib can expand a stream. */
const maxExpansion = 1032;

/** Returns the bytes between the keyword and the end of a stream; no bytes if they are too many, or are not from zlib. */
function packedStream(file: Buffer, keyword: number, end: number): Buffer {
  const lineEnd = file[keyword + 6] === 0x0d ? 2 : 1;
  const packed = file.subarray(keyword + 6 + lineEnd, end);
  const isZlib = packed.length > 2 && (packed.readUInt8(0) & 15) === 8 && packed.readUInt16BE(0) % 31 === 0;
  return isZlib && packed.length <= maxStreamBytes ? packed : Buffer.alloc(0);
}

/** Decompresses a stream; returns null if that fails. */
function inflated(packed: Buffer): Buffer | 'too large' | null {
  if (packed.length === 0) return null;
  try {
    return inflateSync(packed, { maxOutputLength: maxStreamBytes });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : null;
  }
}

/** Returns the first place of a word in this many bytes after `from`; null if there is none. */
function placeWithin(file: Buffer, word: string, from: number, bytes: number): number | null {
  const at = file.subarray(from, from + bytes).indexOf(word);
  return at < 0 ? null : from + at;
}

/** Returns the first place of a word from this byte on; the end of the file if the word does not occur. */
function placeOrEnd(file: Buffer, word: string, from: number): number {
  const at = file.indexOf(word, from);
  return at < 0 ? file.length : at;
}

/** Number of places at which a word is looked at: more than any limit for trees and streams. */
const maxPlaces = 4000;

/** Returns the first places of a word in a file. */
function placesOf(file: Buffer, word: string, most = maxPlaces): number[] {
  const places: number[] = [];
  for (let at = file.indexOf(word); at >= 0 && places.length < most; at = file.indexOf(word, at + word.length))
    places.push(at);
  return places;
}

function textAt(file: Buffer, at: number, length: number): string {
  return file.toString('latin1', Math.max(0, at), Math.max(0, at) + length);
}
