/**
 * Splits a line into words as a POSIX shell would: blanks and newlines separate, single quotes keep everything,
 * a backslash keeps the next character; in double quotes it does so before `"`, `\`, `$` and a backtick only. Nothing is
 * expanded. Throws on an open quote.
 */
export function shellWords(line: string): string[] {
  const words: string[] = [];
  const token = /[ \t\n]+|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^ \t\n'"\\]+)/gy;
  let word: string | undefined;
  while (token.lastIndex < line.length) {
    const at = token.lastIndex;
    const match = token.exec(line);
    if (match === null) throw new Error(`an open quote or a lone backslash at character ${at + 1}`);
    const [whole, single, double, escaped, plain] = match;
    if (/^[ \t\n]/.test(whole)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + (single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? plain ?? '');
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}
