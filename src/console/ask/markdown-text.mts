/** The character references that models write. What is not here is shown as it was written. */
const named: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
  copy: '©',
  reg: '®',
  trade: '™',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  times: '×',
  deg: '°',
  euro: '€',
  rarr: '→',
  larr: '←',
};

/** Text of Markdown with its character references read. */
export function plainText(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return Object.hasOwn(named, name) ? (named[name] as string) : whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : '\uFFFD';
  });
}

const safeProtocols = ['http:', 'https:', 'mailto:'];

/** The address as a browser reads it, if a link may lead there; relative ones lead into this service, so they may not. */
export function safeAddress(href: string): string | null {
  const address = parsedAddress(plainText(href));
  return address !== null && safeProtocols.includes(address.protocol) ? address.href : null;
}

/** Not by URL.parse, which not every browser has. */
function parsedAddress(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
