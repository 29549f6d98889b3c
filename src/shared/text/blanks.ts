/** UTF-16 units encoded at a time. */
const pieceLength = 65_536;
const blank = 0x20;
/** Table by byte: 1 if a blank can begin with this byte. */
const blankBegins = new Uint8Array(256);
for (const byte of [0x20, 9, 10, 11, 12, 13, 0xc2, 0xe1, 0xe2, 0xe3, 0xef]) blankBegins[byte] = 1;

/**
 * Yields the text in UTF-8 with each run of blanks replaced by one space, and without blanks at its ends: the bytes of
 * `text.replace(/\s+/g, ' ').trim()`. That expression takes a second for a text of 15 MB in which every second
 * character is a blank.
 */
export function* collapsedBlanks(text: string): Generator<Uint8Array> {
  const state = { isAfterText: false, isAfterBlank: false };
  for (let at = 0; at < text.length; ) {
    const end = endOfPiece(text, at);
    yield collapse(Buffer.from(text.slice(at, end)), state);
    at = end;
  }
}

/** Collapses a piece. `state`: state at the end of the previous piece. */
function collapse(bytes: Uint8Array, state: { isAfterText: boolean; isAfterBlank: boolean }): Uint8Array {
  let { isAfterText, isAfterBlank } = state;
  const collapsed = Buffer.allocUnsafe(bytes.length + 1); // a blank of the previous piece may come first
  let length = 0;
  for (let index = 0; index < bytes.length; ) {
    const byte = bytes[index] as number;
    const width = blankBegins[byte] === 1 ? blankWidth(bytes, index) : 0;
    if (width > 0) {
      isAfterBlank = true;
      index += width;
      continue;
    }
    if (isAfterBlank && isAfterText) collapsed[length++] = blank;
    isAfterBlank = false;
    isAfterText = true;
    collapsed[length++] = byte;
    index++;
  }
  Object.assign(state, { isAfterText, isAfterBlank });
  return collapsed.subarray(0, length);
}

/** Returns the end of a piece that does not split a surrogate pair. */
function endOfPiece(text: string, at: number): number {
  const end = at + pieceLength;
  if (end >= text.length) return text.length;
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

/** Returns the byte length of a blank at this position, as `\s` defines blanks; 0 if another character begins there. */
function blankWidth(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  if (first === 0xc2) return bytes[at + 1] === 0xa0 ? 2 : 0;
  return isWideBlank((first << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number)) ? 3 : 0;
}

/** Tests for U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000 and U+FEFF. */
function isWideBlank(code: number): boolean {
  if (code >= 0xe28080 && code <= 0xe280af)
    return code <= 0xe2808a || code === 0xe280a8 || code === 0xe280a9 || code === 0xe280af;
  return code === 0xe38080 || code === 0xefbbbf || code === 0xe19a80 || code === 0xe2819f;
}
