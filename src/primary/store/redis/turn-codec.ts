import type { Image } from '../../../shared/job.js';
import type { StoredTurn, TurnChange } from '../contract/conversations.js';
import type { StoredText } from '../contract/stored-text.js';

/** A text of so many bytes is held as bytes, as in memory. */
const minBufferBytes = 4096;
const lineEnd = 0x0a;

/** As it is kept: a line of three numbers (tokens in all, bytes of the images and of the question), then all three texts. */
export function encodeTurn({ user, assistant, images, totalTokens }: TurnChange): Buffer {
  const shown = Buffer.from(images.length === 0 ? '' : JSON.stringify(images));
  const asked = Buffer.from(user);
  const line = Buffer.from(`${totalTokens} ${shown.length} ${asked.length}\n`);
  return Buffer.concat([line, shown, asked, Buffer.from(assistant)]);
}

export function decodeTurn(kept: Buffer): StoredTurn {
  const begin = kept.indexOf(lineEnd) + 1;
  const [totalTokens = 0, shownBytes = 0, askedBytes = 0] = kept.toString('latin1', 0, begin).split(' ').map(Number);
  const asked = begin + shownBytes;
  const answered = asked + askedBytes;
  const images = shownBytes === 0 ? [] : (JSON.parse(kept.toString('utf8', begin, asked)) as readonly Image[]);
  return {
    texts: [storedText(kept.subarray(asked, answered)), storedText(kept.subarray(answered))],
    images,
    totalTokens,
  };
}

/** A copy: what it was cut from would stay as long as it. */
export function storedText(bytes: Buffer): StoredText {
  if (bytes.length < minBufferBytes) return bytes.toString('latin1');
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

export function bytesOfText(text: StoredText): Buffer {
  return typeof text === 'string' ? Buffer.from(text, 'latin1') : text;
}
