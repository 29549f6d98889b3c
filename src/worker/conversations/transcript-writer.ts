import type { TranscriptPart } from '../../shared/transcript.js';

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

/** What is sent: the items of the stream, written out. */
export async function* written(
  items: AsyncIterable<readonly TranscriptPart[]>,
  writer: TranscriptWriter,
): AsyncGenerator<string> {
  yield writer.head();
  for await (const parts of items) yield parts.map((part) => writer.write(part)).join('');
  yield writer.tail();
}
