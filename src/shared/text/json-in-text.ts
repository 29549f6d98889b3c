/** JSON values in the text of a model, which may write thoughts and sentences around them. */

/** Tags around a thought, at the start of an answer. Some servers omit the first tag. */
const thoughtMarks = [
  { begin: '<think>', end: '</think>' },
  { begin: '<thinking>', end: '</thinking>' },
  { begin: 'Thinking...', end: '...done thinking.' },
] as const;

/** Removes a thought at the start of an answer. */
export function withoutThought(text: string): string {
  for (const { begin, end } of thoughtMarks) {
    const at = text.indexOf(end);
    if (at < 0) continue;
    const first = text.slice(0, at).indexOf(begin);
    const isLeading = first < 0 ? !/[{[]/.test(text.slice(0, at)) : text.slice(0, first).trim() === '';
    if (isLeading) return text.slice(at + end.length).trim();
  }
  return text;
}

/** More values than this are not an answer. */
const maxValues = 1000;

/**
 * Returns the JSON of the objects and lists in a text that are not part of another one. After a mistake, the search
 * continues at the mistake, so that it takes linear time.
 */
export function valuesIn(text: string): string[] {
  const values: string[] = [];
  const start = /[{[]/g;
  for (let found = start.exec(text); found !== null && values.length < maxValues; found = start.exec(text)) {
    const { end, isWhole } = scan(text, found.index);
    if (isWhole) values.push(text.slice(found.index, end));
    start.lastIndex = Math.max(end, found.index + 1);
  }
  return values;
}

const maxDepth = 1000;
/** Matches a string, a number, a name or a bracket, with the white space after it. */
const token = /(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|-?[0-9][0-9.eE+-]*|true|false|null|[{}[\],:])\s*/y;

/** Returns the end of the value that begins at `from`, or the place at which the text stops being JSON. */
function scan(text: string, from: number): { readonly end: number; readonly isWhole: boolean } {
  const open: string[] = [];
  let at = from;
  for (;;) {
    token.lastIndex = at;
    const [piece] = token.exec(text) ?? [];
    if (piece === undefined) return { end: at, isWhole: false };
    const mark = piece.trimEnd();
    if (mark === '{' || mark === '[') open.push(mark === '{' ? '}' : ']');
    else if ((mark === '}' || mark === ']') && open.pop() !== mark) return { end: at, isWhole: false };
    if (open.length === 0) return { end: at + mark.length, isWhole: true };
    if (open.length > maxDepth) return { end: text.length, isWhole: false }; // else a part of it would be found
    at += piece.length;
  }
}
