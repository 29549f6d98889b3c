const csi = '\u001b[';

/** Styles text with terminal colours, or returns it unchanged. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

export function paintFor(isColoured: boolean): Paint {
  const style = (on: number, off: number) => (text: string) =>
    isColoured && text !== '' ? `${csi}${on}m${text}${csi}${off}m` : text;
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
    cyan: style(36, 39),
  };
}

export const colourCodes = new RegExp(`${csi.replace('[', '\\[')}[0-9;]*m`, 'g');

/** Cuts a line to this number of columns. Colour codes take no space and are preserved. */
export function clip(line: string, columns: number): string {
  const text = line.replace(colourCodes, '');
  if ([...text].length <= columns) return line;
  let left = Math.max(0, columns - 1);
  const pieces = line.split(new RegExp(`(${colourCodes.source})`)).map((piece) => {
    if (piece.startsWith(csi)) return piece;
    const cut = [...piece].slice(0, left);
    left -= cut.length;
    return cut.join('');
  });
  return `${pieces.join('')}…`;
}

/** Removes control characters except line feed and tab, so that untrusted text cannot control the terminal. */
export function plain(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, '');
}

const paintedOrControl = new RegExp(`(${csi.replace('[', '\\[')}(?:1|2|22|3[1-36]|39)m)|(?![\\n\\t])\\p{Cc}`, 'gu');

/** Removes control characters like `plain`, except the styles of `Paint`. */
export function plainButPaint(text: string): string {
  return text.replace(paintedOrControl, (_, style: string | undefined) => style ?? '');
}

/** JSON that is safe for a terminal. JSON.stringify leaves U+009B unescaped, which begins an escape sequence. */
export function plainJson(value: unknown): string {
  const escaped = (control: string) => `\\u00${control.charCodeAt(0).toString(16)}`;
  return JSON.stringify(value).replace(/\p{Cc}/gu, escaped);
}

/**
 * Returns one line for a terminal: characters that control the terminal, or change the direction of text, are replaced
 * by their codes.
 */
export function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (odd) => {
    const code = (odd.codePointAt(0) as number).toString(16);
    return code.length > 2 ? `\\u{${code}}` : `\\x${code.padStart(2, '0')}`;
  });
}
