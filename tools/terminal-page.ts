/** Style that SGR escape sequences of a terminal set for the following text. */
interface Style {
  readonly colour: string | null;
  readonly isBold: boolean;
  readonly isDim: boolean;
}

const plain: Style = { colour: null, isBold: false, isDim: false };

/** Sixteen colours by their SGR codes: 30 to 37, and 90 to 97. */
const colours: Readonly<Record<number, string>> = {
  30: '#484f58',
  31: '#ff7b72',
  32: '#56d364',
  33: '#e3b341',
  34: '#79c0ff',
  35: '#d2a8ff',
  36: '#56d4dd',
  37: '#c9d1d9',
  90: '#8b949e',
  91: '#ffa198',
  92: '#7ee787',
  93: '#f2cc60',
  94: '#a5d6ff',
  95: '#e2c5ff',
  96: '#b3f0ff',
  97: '#f0f6fc',
};

function styled(style: Style, code: number): Style {
  if (code === 0) return plain;
  if (code === 1) return { ...style, isBold: true };
  if (code === 2) return { ...style, isDim: true };
  if (code === 22) return { ...style, isBold: false, isDim: false };
  if (code === 39) return { ...style, colour: null };
  return code in colours ? { ...style, colour: colours[code] ?? null } : style;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function spanOf(text: string, { colour, isBold, isDim }: Style): string {
  const rules = [
    ...(colour === null ? [] : [`color:${colour}`]),
    ...(isBold ? ['font-weight:bold'] : []),
    ...(isDim ? ['opacity:.65'] : []),
  ];
  return rules.length === 0 ? escaped(text) : `<span style="${rules.join(';')}">${escaped(text)}</span>`;
}

/**
 * Returns a page that looks like a terminal with this text. Supports the escape sequences for colours, bold and dim.
 */
export function terminalPage(title: string, text: string): string {
  let style = plain;
  const [first = '', ...parts] = text.split('\u001b[');
  let html = spanOf(first, style);
  for (const part of parts) {
    const [, codes = '', rest = ''] = /^([\d;]*)m(.*)$/s.exec(part) ?? [];
    for (const code of codes.split(';')) style = styled(style, Number(code));
    html += spanOf(rest, style);
  }
  return `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #fff; }
main { display: inline-block; padding: 12px 18px 16px; background: #0d1117; border-radius: 8px; }
p { margin: 0 0 8px; color: #8b949e; font: 12px sans-serif; text-align: center; }
pre { margin: 0; color: #e6edf3; font: 14px/1.35 'DejaVu Sans Mono', monospace; }
</style><main><p>${escaped(title)}</p><pre>${html}</pre></main>`;
}
