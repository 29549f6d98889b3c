/** Grammars of highlight.js. Each is loaded when code in its language is shown. */
const grammars: Readonly<Record<string, () => Promise<{ readonly default: unknown }>>> = {
  bash: () => import('@highlightjs/cdn-assets/es/languages/bash.min.js'),
  c: () => import('@highlightjs/cdn-assets/es/languages/c.min.js'),
  cpp: () => import('@highlightjs/cdn-assets/es/languages/cpp.min.js'),
  csharp: () => import('@highlightjs/cdn-assets/es/languages/csharp.min.js'),
  css: () => import('@highlightjs/cdn-assets/es/languages/css.min.js'),
  diff: () => import('@highlightjs/cdn-assets/es/languages/diff.min.js'),
  go: () => import('@highlightjs/cdn-assets/es/languages/go.min.js'),
  java: () => import('@highlightjs/cdn-assets/es/languages/java.min.js'),
  javascript: () => import('@highlightjs/cdn-assets/es/languages/javascript.min.js'),
  json: () => import('@highlightjs/cdn-assets/es/languages/json.min.js'),
  php: () => import('@highlightjs/cdn-assets/es/languages/php.min.js'),
  python: () => import('@highlightjs/cdn-assets/es/languages/python.min.js'),
  ruby: () => import('@highlightjs/cdn-assets/es/languages/ruby.min.js'),
  rust: () => import('@highlightjs/cdn-assets/es/languages/rust.min.js'),
  sql: () => import('@highlightjs/cdn-assets/es/languages/sql.min.js'),
  typescript: () => import('@highlightjs/cdn-assets/es/languages/typescript.min.js'),
  xml: () => import('@highlightjs/cdn-assets/es/languages/xml.min.js'),
  yaml: () => import('@highlightjs/cdn-assets/es/languages/yaml.min.js'),
};

/** Other names of the languages on code fences. */
const aliases: Readonly<Record<string, string>> = {
  'c++': 'cpp',
  cc: 'cpp',
  cs: 'csharp',
  curl: 'bash',
  'c#': 'csharp',
  golang: 'go',
  h: 'cpp',
  hpp: 'cpp',
  html: 'xml',
  js: 'javascript',
  jsx: 'javascript',
  mjs: 'javascript',
  patch: 'diff',
  py: 'python',
  python3: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  svg: 'xml',
  ts: 'typescript',
  tsx: 'typescript',
  yml: 'yaml',
  zsh: 'bash',
};

/** Piece of code in one colour. */
export interface CodePiece {
  /** CSS class such as `hljs-keyword`; null for plain text. */
  readonly kind: string | null;
  readonly text: string;
}

/** Maximum length of highlighted code in UTF-16 units. Longer code stays plain, so that it does not delay the page. */
const maxLength = 30_000;

/** Highlights code. Resolves with null if the language is unknown or the code is too long. */
export async function highlight(code: string, language: string): Promise<readonly CodePiece[] | null> {
  const word = language.toLowerCase();
  const name = Object.hasOwn(aliases, word) ? (aliases[word] as string) : word;
  if (code.length > maxLength || !Object.hasOwn(grammars, name)) return null;
  const { default: hljs } = await import('@highlightjs/cdn-assets/es/core.min.js');
  if (hljs.getLanguage(name) === undefined) hljs.registerLanguage(name, (await grammars[name]?.())?.default);
  return piecesOf(hljs.highlight(code, { language: name, ignoreIllegals: true }).value);
}

const characters: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" };
const part = /<span class="([\w -]+)">|<\/span>|&(amp|lt|gt|quot|#x27);|[^<&]+|[<&]/g;

/**
 * Extracts text and class names from the HTML that highlight.js writes. The console never inserts this HTML into the
 * page.
 */
export function piecesOf(value: string): readonly CodePiece[] {
  const pieces: { kind: string | null; text: string }[] = [];
  const open: string[] = [];
  for (const [whole, kind, character] of value.matchAll(part)) {
    if (kind !== undefined) open.push(kind);
    else if (whole === '</span>') open.pop();
    else {
      const text = character === undefined ? whole : (characters[character] as string);
      const current = open.at(-1) ?? null;
      const last = pieces.at(-1);
      if (last !== undefined && last.kind === current) last.text += text;
      else pieces.push({ kind: current, text });
    }
  }
  return pieces;
}
