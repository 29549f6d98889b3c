/**
 * Place of an answer in JSON. `slice`: the text between two positions in UTF-16 units, inside a JSON string. `value`: the
 * text, which is a JSON value.
 */
export type FramePlace =
  | { readonly type: 'slice'; readonly from: number; readonly to: number | null }
  | { readonly type: 'value' };

/** JSON that is written around an answer. */
export type AnswerFrame = readonly (string | FramePlace)[];

/** Escapes a text as in a JSON string, without the quotes. */
export function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Replaces line ends, which would end a server-sent event or a line of a file. JSON has line ends only between values. */
export function onOneLine(json: string): string {
  return json.replaceAll(/[\r\n]/g, ' ');
}

/** Replaces each place of a frame by the answer, or by a part of it. */
export function filledFrame(frame: AnswerFrame, answer: string): string {
  const parts = frame.map((part) => {
    if (typeof part === 'string') return part;
    return part.type === 'value' ? onOneLine(answer) : escaped(answer.slice(part.from, part.to ?? undefined));
  });
  return parts.join('');
}
