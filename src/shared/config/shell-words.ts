/**
 * Splits a line into words as a POSIX shell would: blanks separate, single quotes keep everything, double quotes keep
 * all but `\"` and `\\`, a backslash keeps the next character. Nothing is expanded. Throws on an open quote.
 */
export function shellWords(line: string): string[] {
  const words: string[] = [];
  const token = /\s+|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)/gy;
  let word: string | undefined;
  while (token.lastIndex < line.length) {
    const at = token.lastIndex;
    const match = token.exec(line);
    if (match === null) throw new Error(`an open quote or a lone backslash at character ${at + 1}`);
    const [whole, single, double, escaped, plain] = match;
    if (/^\s/.test(whole) && single === undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + (single ?? double?.replace(/\\(["\\])/g, '$1') ?? escaped ?? plain ?? '');
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}
