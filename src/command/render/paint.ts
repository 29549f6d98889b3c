const csi = '\u001b[';

/** Colours a piece of text, or leaves it as it is. */
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

const codes = new RegExp(`${csi.replace('[', '\\[')}[0-9;]*m`, 'g');

/** Cuts a line to so many columns, but none of its colours. */
export function clip(line: string, columns: number): string {
  const text = line.replace(codes, '');
  if ([...text].length <= columns) return line;
  let left = Math.max(0, columns - 1);
  const kept = line.split(new RegExp(`(${codes.source})`)).map((piece) => {
    if (piece.startsWith(csi)) return piece;
    const cut = [...piece].slice(0, left);
    left -= cut.length;
    return cut.join('');
  });
  return `${kept.join('')}…`;
}

/** What a terminal may be given of a text from elsewhere: no control character but line feed and tab. */
export function plain(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, '');
}

/** JSON that a terminal may be given: JSON.stringify leaves U+007F to U+009F as they are, and U+009B begins a sequence. */
export function plainJson(value: unknown): string {
  const escaped = (control: string) => `\\u00${control.charCodeAt(0).toString(16)}`;
  return JSON.stringify(value).replace(/\p{Cc}/gu, escaped);
}
