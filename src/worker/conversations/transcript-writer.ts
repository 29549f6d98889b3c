import type { TranscriptItem, TranscriptOrder, TranscriptPart } from '../../shared/ipc/transcript.js';

/** Writes a conversation out, part by part, in one form. */
export interface TranscriptWriter {
  readonly type: string;
  /** Of the name of a file. */
  readonly extension: string;
  /** Whether the content of images is part of it. */
  readonly withImages: boolean;
  head(): string;
  write(part: TranscriptPart): string;
  tail(): string;
}

/** Which piece of a conversation. */
export type PieceOrder = Pick<TranscriptOrder, 'from' | 'withImages'>;

/** What is sent: a conversation piece by piece, written out. Each is asked for when the one before was taken. */
export async function* written(
  read: (order: PieceOrder) => Promise<TranscriptItem>,
  writer: TranscriptWriter,
): AsyncGenerator<string> {
  yield writer.head();
  let from: TranscriptOrder['from'] = null;
  do {
    const { parts, next }: TranscriptItem = await read({ from, withImages: writer.withImages });
    yield parts.map((part) => writer.write(part)).join('');
    from = next;
  } while (from !== null);
  yield writer.tail();
}
