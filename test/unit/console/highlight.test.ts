import { consolePart } from '../../support/clients/console-parts.js';

interface Piece {
  readonly kind: string | null;
  readonly text: string;
}

interface Part {
  highlight(code: string, language: string): Promise<readonly Piece[] | null>;
  piecesOf(value: string): readonly Piece[];
}

const part = consolePart<Part>('ui/highlight.mjs');
const hostile = `"</span><img src=x onerror=alert(1)>" & 'a' <b> &amp; <span class="x">`;

describe('Highlighted code', () => {
  it.each([
    ['python', 'def f(x): return x  # a comment', ['hljs-keyword', 'def']],
    ['ts', 'const a: number = 1;', ['hljs-keyword', 'const']],
    ['JSON', '{"a": 1}', ['hljs-number', '1']],
    ['sh', 'echo "$HOME"', ['hljs-built_in', 'echo']],
    ['c++', 'int main() { return 0; }', ['hljs-type', 'int']],
    ['html', '<p class="a">text</p>', ['hljs-name', 'p']],
  ])('supports %s', async (language, code, [kind, text]) => {
    const { highlight } = await part;
    expect(await highlight(code, language)).toContainEqual({ kind, text });
  });

  it.each([
    ...['js', 'python', 'xml', 'sql', 'bash', 'yaml', 'rust', 'go', 'java', 'c', 'csharp', 'css', 'diff', 'php'],
    'ruby',
  ])('has unchanged text: %s', async (language) => {
    const { highlight } = await part;
    const pieces = await highlight(`${hostile}\n${hostile}`, language);
    expect(pieces?.map(({ text }) => text).join('')).toBe(`${hostile}\n${hostile}`);
    for (const { kind } of pieces ?? []) expect(kind ?? 'hljs-plain').toMatch(/^(hljs|language)-[\w -]+$/);
  });

  it('stays plain in an unknown language, and if it is very long', async () => {
    const { highlight } = await part;
    for (const language of ['', 'klingon', '__proto__', 'constructor'])
      expect(await highlight('a', language)).toBeNull();
    expect(await highlight('a'.repeat(30_001), 'js')).toBeNull();
  });

  it('uses only colour names and text from the library', async () => {
    const { piecesOf } = await part;
    const value = '<span class="hljs-a">x<span class="hljs-b">&lt;</span></span>&copy;<img src="x">';
    expect(piecesOf(value)).toEqual([
      { kind: 'hljs-a', text: 'x' },
      { kind: 'hljs-b', text: '<' },
      { kind: null, text: '&copy;<img src="x">' },
    ]);
  });
});
