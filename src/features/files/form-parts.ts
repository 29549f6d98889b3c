/** Largest number of bytes at the beginning of a part that are kept for its headers. */
const maxHeadBytes = 8 * 1024;

/**
 * Counts the parts of a form before they are parsed, because a parser creates several objects for each, and a piece of
 * 64 KB can have thousands. Keeps the beginning of each part.
 */
export class FormParts {
  readonly #mark: Buffer;
  readonly #max: number;
  readonly #heads: string[] = [];
  /** Last bytes before the next piece, which may begin a mark. The first mark needs no line break before it. */
  #tail: Buffer = Buffer.from('\r\n');

  constructor(boundary: string, max: number) {
    this.#mark = Buffer.from(`\r\n--${boundary}`, 'latin1');
    this.#max = max;
  }

  /** Counts the parts that begin in a piece. Returns whether the form still has as many as it may have. */
  addPiece(piece: Buffer): boolean {
    const head = this.#heads.pop();
    if (head !== undefined)
      this.#heads.push(head + piece.toString('latin1', 0, Math.max(0, maxHeadBytes - head.length)));
    const bytes = Buffer.concat([this.#tail, piece]);
    for (let at = bytes.indexOf(this.#mark); at >= 0; at = bytes.indexOf(this.#mark, at + this.#mark.length)) {
      const from = at + this.#mark.length;
      this.#heads.push(bytes.toString('latin1', from, from + maxHeadBytes));
      if (this.#heads.length > this.#max + 1) return false; // the last mark ends the form
    }
    this.#tail = bytes.subarray(Math.max(0, bytes.length - this.#mark.length + 1));
    return true;
  }

  /**
   * Returns the extended name of the field `file` (`filename*`, RFC 8187), which has more characters than `filename`;
   * null if it has none.
   */
  get extendedName(): string | null {
    for (const head of this.#heads) {
      const [sent = ''] = head.split('\r\n\r\n', 1);
      const headers = sent.replace(/\r\n[\t ]+/g, ' '); // a header may continue in the next line
      if (!filePart.test(headers)) continue;
      const [, charset = '', value = ''] = extended.exec(headers) ?? [];
      if (charset !== '') return decoded(charset.toLowerCase(), value);
    }
    return null;
  }
}

/** Matches `filename*` of a Content-Disposition, outside of quoted values. Some clients quote the value. */
const extended =
  /(?:^|\r\n)content-disposition:(?:[^\r\n";]|"(?:[^\r\n"\\]|\\[^\r\n])*"|;(?!\s*filename\*))*;\s*filename\*\s*=\s*"?(utf-8|iso-8859-1)'[^'\r\n]*'([^\s;"]*)/i;

const filePart = /;\s*name\s*=\s*(?:"file"|file\s*(?:;|\r|$))/i;

function decoded(charset: string, value: string): string | null {
  if (!/^(?:%[0-9a-f]{2}|[^%])*$/i.test(value)) return null;
  const bytes = Buffer.from(
    value.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  const name = bytes.toString(charset === 'utf-8' ? 'utf8' : 'latin1');
  return name.trim() === '' || name.includes('\ufffd') ? null : name;
}
