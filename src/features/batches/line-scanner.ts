import { isUtf8 } from 'node:buffer';
import { lineEnd } from '../files/line-counter.js';

/** Line of a file that is not blank. */
export interface ScannedLine {
  /** Number of the line, from 1. Blank lines count. */
  readonly number: number;
  /** Position of its first byte, and of the next line. */
  readonly start: number;
  readonly end: number;
  /** Value of the field `custom_id`; null if the line has no such text. A line with invalid JSON may have one. */
  readonly id: string | null;
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
/** All blanks of JSON are at or below this code. */
const space = 0x20;

const idField = 'custom_id';
/** Longest string that is read, bytes. A longer id is invalid. */
const maxStringBytes = 4 * 1024;

/** Reads the field `custom_id` of one line over its bytes. */
class IdReader {
  /** Pieces of the value of `custom_id`; null if that is not text. */
  #id: readonly Uint8Array[] | null = null;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Whether the next string at the depth 1 is the name of a field. */
  #isName = false;
  /** Whether the value of `custom_id` follows. */
  #isId = false;
  /** Pieces of the current string; null if the string does not matter. */
  #string: Uint8Array[] | null = null;
  #stringBytes = 0;

  get id(): string | null {
    return textOf(this.#id);
  }

  /** Reads bytes of the line, which may be a part of it. */
  read(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (this.#isInString) at = this.#readString(bytes, at);
      else if (byte > space) this.#readMark(byte);
    }
  }

  /** Returns the position of the closing quote, or the length if the string continues in the next bytes. */
  #readString(bytes: Uint8Array, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
    this.#isEscaped = at > bytes.length;
    if (this.#string !== null) this.#addToString(bytes.subarray(from, at));
    if (at < bytes.length) this.#endString();
    return at;
  }

  #addToString(piece: Uint8Array): void {
    this.#stringBytes += piece.length;
    if (this.#stringBytes > maxStringBytes) this.#string = null;
    else this.#string?.push(piece);
  }

  #endString(): void {
    this.#isInString = false;
    if (this.#depth !== 1) return;
    if (this.#isName) this.#isId = this.#mayBeIdField && textOf(this.#string) === idField;
    else if (this.#isId) this.#id = this.#string;
    this.#isName = false;
  }

  /** Whether the current string has the length of the field's name, which six bytes for each character may escape. */
  get #mayBeIdField(): boolean {
    return this.#stringBytes >= idField.length && this.#stringBytes <= 6 * idField.length;
  }

  #readMark(byte: number): void {
    if (byte === quote) {
      this.#isInString = true;
      this.#string = this.#depth === 1 && (this.#isName || this.#isId) ? [] : null;
      this.#stringBytes = 0;
    } else if (byte === openObject || byte === openList) {
      this.#clearId();
      this.#depth++;
      this.#isName = this.#depth === 1;
    } else if (byte === closeObject || byte === closeList) this.#depth--;
    else if (byte === comma) {
      this.#isId = false;
      this.#isName = this.#depth === 1;
    } else if (byte !== colon) this.#clearId();
  }

  /** Forgets the id of an earlier field of the same name, whose later value is not text. */
  #clearId(): void {
    if (this.#isId && this.#depth === 1) this.#id = null;
  }
}

function textOf(pieces: readonly Uint8Array[] | null): string | null {
  if (pieces === null) return null;
  const bytes = Buffer.concat(pieces);
  if (!isUtf8(bytes)) return null;
  const text = bytes.toString();
  try {
    return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
  } catch {
    return null; // no valid string of JSON
  }
}

/**
 * Finds the lines of a file and their ids over its bytes, as they arrive. No line is in memory, and none is parsed: a
 * megabyte takes one to three milliseconds, whatever it contains.
 */
export class LineScanner {
  /** Position behind the bytes so far. */
  #position: number;
  #start: number;
  #number = 1;
  /** Null until the line has a byte that is not blank. */
  #fields: IdReader | null = null;

  /** `position`: position in the file of the first byte. */
  constructor(position = 0) {
    this.#position = position;
    this.#start = position;
  }

  /** Yields the lines that end in these bytes. */
  *scan(bytes: Uint8Array): Generator<ScannedLine, undefined> {
    const first = this.#position;
    for (let from = 0; from < bytes.length; ) {
      if (this.#fields === null) from = this.#skipBlanks(bytes, from, first);
      if (from === bytes.length) break;
      const at = bytes.indexOf(lineEnd, from);
      const to = at < 0 ? bytes.length : at;
      this.#fields ??= new IdReader();
      this.#fields.read(bytes.subarray(from, to));
      from = at < 0 ? to : at + 1;
      this.#position = first + from;
      const line = at < 0 ? null : this.#endLine();
      if (line !== null) yield line;
    }
    this.#position = first + bytes.length;
  }

  /** Returns the position of the next byte that is not blank, or the length. */
  #skipBlanks(bytes: Uint8Array, from: number, first: number): number {
    let at = from;
    for (; at < bytes.length && (bytes[at] as number) <= space; at++) {
      if (bytes[at] !== lineEnd) continue;
      this.#number++;
      this.#start = first + at + 1;
    }
    return at;
  }

  /** Returns the last line, which needs no line end; null if it is blank. */
  last(): ScannedLine | null {
    return this.#endLine();
  }

  #endLine(): ScannedLine | null {
    const fields = this.#fields;
    const line = { number: this.#number++, start: this.#start, end: this.#position };
    this.#start = this.#position;
    this.#fields = null;
    return fields === null ? null : { ...line, id: fields.id };
  }
}
