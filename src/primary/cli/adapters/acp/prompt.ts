import type { Image, Turn } from '../../contract/adapter.js';
import { furtherPieces, type PromptPiece, promptPieces } from '../common/transcript.js';

/** A content block of a prompt. */
export type PromptBlock = ReturnType<typeof textBlock> | ReturnType<typeof imageBlock>;

/** What agents take for a command of their own where a prompt begins with it, whatever blank stands before. */
const command = /^\s*[/$!]/;

/** Only text that begins with something else is taken for what it is. */
const guard = 'Message:\n';

/**
 * What an agent is told of a turn. It has no place for a system text and what was said before, so these stand in front
 * of the first message.
 */
export function promptBlocks(turn: Turn, isFirst: boolean): readonly PromptBlock[] {
  const pieces = joined(isFirst ? promptPieces(turn) : furtherPieces(turn));
  const first = pieces.find((piece) => typeof piece === 'string');
  return pieces.map((piece) => {
    if (typeof piece !== 'string') return imageBlock(piece);
    return textBlock(piece === first && command.test(piece) ? guard + piece : piece);
  });
}

/** With no empty texts, and none beside another. */
function joined(pieces: readonly PromptPiece[]): readonly PromptPiece[] {
  const whole: PromptPiece[] = [];
  for (const piece of pieces.filter((piece) => piece !== '')) {
    const last = whole.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') whole[whole.length - 1] = last + piece;
    else whole.push(piece);
  }
  return whole;
}

function textBlock(text: string) {
  return { type: 'text', text } as const;
}

export function imageBlock({ mediaType, data }: Image) {
  return { type: 'image', mimeType: mediaType, data } as const;
}
