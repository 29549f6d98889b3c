import { consolePart, type DrawnNode, drawn } from '../../support/clients/console-parts.js';
import { processorMs } from '../../support/processes/processor-time.js';

interface Block {
  readonly raw: string;
  readonly token: unknown;
}
interface Reader {
  growing(text: string): readonly Block[];
  whole(text: string): readonly Block[];
}

const part = consolePart<{
  MarkdownReader: new () => Reader;
  blockNode(token: unknown, depth: number): unknown;
  headingLevels(tokens: readonly unknown[]): number[];
}>('ui/markdown.mjs');

/** Returns the nodes drawn for Markdown. A code block is an element `CodeBlock`. */
async function markdown(text: string): Promise<DrawnNode[]> {
  const { MarkdownReader, blockNode } = await part;
  return new MarkdownReader().whole(text).flatMap(({ token }) => drawn(blockNode(token, 0)));
}

/** Returns every element of a drawing, at any depth. */
function elementsOf(nodes: readonly DrawnNode[]): { tag: string; attributes: Readonly<Record<string, unknown>> }[] {
  return nodes.flatMap((node) => {
    if (typeof node === 'string') return [];
    const [tag, attributes, ...children] = node;
    return [{ tag, attributes }, ...elementsOf(children)];
  });
}

function textOf(nodes: readonly DrawnNode[]): string {
  return nodes
    .map((node) => (typeof node === 'string' ? node : textOf(node.slice(2) as readonly DrawnNode[])))
    .join('');
}

/** Code that may be broken between its parts, and a formula within a line. */
const split = (first: string, second: string): DrawnNode => ['code', {}, first, ['wbr', {}], second];
const formula = (text: string, raw: string): DrawnNode => ['Formula', { text, raw, isDisplayed: false }];

describe('Markdown in an answer', () => {
  it.each<[string, string, DrawnNode[]]>([
    ['text', 'Hello\nthere', [['p', {}, 'Hello\nthere']]],
    [
      'emphasis',
      '*a* **b** ~~c~~ `d<e`',
      [['p', {}, ['em', {}, 'a'], ' ', ['strong', {}, 'b'], ' ', ['del', {}, 'c'], ' ', ['code', {}, 'd<e']]],
    ],
    ['a heading, below those of the page', '# a', [['h3', {}, 'a']]],
    ['the lowest heading', '###### b', [['h6', {}, 'b']]],
    ['a line', '---', [['hr', {}]]],
    ['a quote', '> a', [['blockquote', {}, ['p', {}, 'a']]]],
    [
      'a name of a variable',
      '`A_B`, `a/b` and `__c`',
      [['p', {}, split('A_', 'B'), ', ', split('a/', 'b'), ' and ', ['code', {}, '__c']]],
    ],
    ['code', '```js x\na < b\n```', [['CodeBlock', { code: 'a < b', language: 'js' }]]],
    [
      'formulas',
      'a $x^2$ and \\(y_1*z*\\)\n\n$$\n- a\n= b\n$$\n\n\\[c\\]',
      [
        ['p', {}, 'a ', formula('x^2', '$x^2$'), ' and ', formula('y_1*z*', '\\(y_1*z*\\)')],
        ['Formula', { text: '- a\n= b', raw: '$$\n- a\n= b\n$$', isDisplayed: true }],
        ['Formula', { text: 'c', raw: '\\[c\\]', isDisplayed: true }],
      ],
    ],
    [
      'money and variables, which are no formulas',
      'It costs $5 and $10, $5-$10, $HOME/$USER, `$x$`',
      [['p', {}, 'It costs $5 and $10, $5-$10, $HOME/$USER, ', ['code', {}, '$x$']]],
    ],
    ['a formula that has not ended', 'a $x and $$y', [['p', {}, 'a $x and $$y']]],
    ['code that has not ended', '```\na', [['CodeBlock', { code: 'a', language: '' }]]],
    ['lists in lists', '3. a\n   - b\n', [['ol', { start: 3 }, ['li', {}, 'a', ['ul', {}, ['li', {}, 'b']]]]]],
    [
      'tasks',
      '- [x] a',
      [['ul', {}, ['li', { class: 'task' }, ['span', { role: 'img', 'aria-label': 'done' }, '☑ '], 'a']]],
    ],
    ['character references', '&lt;b&gt; &amp;amp; &#65;&#x42; &nope; &#0;', [['p', {}, '<b> &amp; AB &nope; \uFFFD']]],
    ['escapes', '\\*a\\* \\<b>', [['p', {}, '*a* <b>']]],
    ['breaks', 'a  \nb<br>c', [['p', {}, 'a', ['br', {}], 'b', ['br', {}], 'c']]],
  ])('can be %s', async (_, text, expected) => {
    expect(await markdown(text)).toEqual(expected);
  });

  it('can be a table, with aligned columns', async () => {
    const nodes = await markdown('|a|b|\n|-:|-|\n|1|*2*|');
    const tags = elementsOf(nodes).map(({ tag, attributes }) => [tag, attributes.class].filter(Boolean).join('.'));
    expect(tags.join(' ')).toBe('div.table table thead tr th.to-right th tbody tr td.to-right td em');
    expect(textOf(nodes)).toBe('ab12');
  });

  it.each([
    ['# a\n\n## b\n\n### c\n\n## d', [3, 4, 5, 4]],
    ['## a\n\ntext\n\n### b', [3, 0, 4]],
    ['#### a\n\n# b\n\n###### c', [3, 3, 4]],
    ['# a\n\n### b\n\n## c', [3, 4, 4]],
    ['# 1\n\n## 2\n\n### 3\n\n#### 4\n\n##### 5', [3, 4, 5, 6, 6]],
  ])('has headings that leave out no level: %j', async (text, levels) => {
    const { MarkdownReader, headingLevels } = await part;
    const tokens = new MarkdownReader().whole(text).map(({ token }) => token as { readonly type: string });
    expect(headingLevels(tokens.filter(({ type }) => type !== 'space'))).toEqual(levels);
  });

  it('has footnotes, and marks that lead to them', async () => {
    const text = 'One[^1], two[^2b], `[^1]`, no [^3].\n\n[^1]: First\nline with *emphasis*\n[^2b]: Second\n';
    const nodes = await markdown(text);
    expect(textOf(nodes)).toBe('One1, two2b, [^1], no [^3].1 First\nline with emphasis ↩2b Second ↩');
    const names = elementsOf(nodes).flatMap(({ attributes }) => attributes['aria-label'] ?? []);
    const back = (label: string) => `Back to the place of note ${label}`;
    expect(names).toEqual(['Note 1', 'Note 2b', back('1'), back('2b')]);
  });

  it('has no footnote without a mark of it: a set of characters stays as written', async () => {
    expect(await markdown('not [^a] and [^abc]')).toEqual([['p', {}, 'not [^a] and [^abc]']]);
  });

  it.each(['http://a.example/', 'https://a.example/?a=1&b=2', 'mailto:ada@a.example'])(
    'links to %s without a referrer',
    async (href) => {
      const link = { href, target: '_blank', rel: 'noopener noreferrer' };
      expect(await markdown(`[a](${href})`)).toEqual([['p', {}, ['a', link, 'a']]]);
    },
  );

  it('never loads an image, but shows a link to it', async () => {
    const link = { href: 'https://a.example/x.png', target: '_blank', rel: 'noopener noreferrer' };
    expect(await markdown('![a cat](https://a.example/x.png)')).toEqual([['p', {}, ['a', link, 'Image: a cat']]]);
  });
});

describe('An attack with Markdown', () => {
  const attacks = [
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    'a <img src=x onerror=alert(1)> b',
    '<svg onload=alert(1)>',
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    '<a href="javascript:alert(1)">a</a>',
    '<style>@import "https://evil.example/x.css"</style>',
    '<details open ontoggle=alert(1)>',
    '<!-- <script>alert(1)</script> -->',
    '<![CDATA[<script>alert(1)</script>]]>',
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a]( javascript:alert(1))',
    '[a](<java\tscript:alert(1)>)',
    '[a](javascript&#58;alert(1))',
    '[a](javascript&colon;alert(1))',
    '[a](&#x6A;avascript:alert(1))',
    '[a](\u0001javascript:alert(1))',
    '[a](data:text/html,<script>alert(1)</script>)',
    '[a](vbscript:alert(1))',
    '[a](file:///etc/passwd)',
    '[a](blob:https://a.example/1)',
    '[a](//evil.example)',
    '[a](/usage)',
    '[a](#/ask?conversation=x)',
    '[a](\\\\evil.example)',
    '[a]: javascript:alert(1)\n\n[a]',
    '<javascript:alert(1)>',
    '![a](javascript:alert(1))',
    '![a](data:image/svg+xml;base64,PHN2Zz4=)',
    '![" onerror="alert(1)](https://a.example/" onerror="alert(1))',
    '[a](https://a.example "\\" onmouseover=\\"alert(1)")',
    '```"><script>alert(1)</script>\na\n```',
    '`<script>alert(1)</script>`',
    '| <script>alert(1)</script> |\n|-|\n| <img src=x onerror=alert(1)> |',
    '# <img src=x onerror=alert(1)>',
    '- <img src=x onerror=alert(1)>',
    '> <script>alert(1)</script>',
    '&lt;script&gt;alert(1)&lt;/script&gt;',
    '[<img src=x onerror=alert(1)>](https://a.example)',
    '<https://a.example/"onmouseover="alert(1)>',
    'https://a.example/"onmouseover=alert(1)',
    'a[^<img/src=x>]\n\n[^<img/src=x>]: <script>alert(1)</script> [b](javascript:alert(1))',
    'a[^"onclick="alert(1)]\n\n[^"onclick="alert(1)]: b',
  ];

  const tags =
    'p h3 h4 h5 h6 ul ol li blockquote hr br strong em del code span a div table thead tbody tr th td CodeBlock sup button';
  const names =
    'href target rel class start title role aria-label tabindex code language type data-mark data-note data-title onClick';

  it.each(attacks)('becomes text, or a safe link: %s', async (attack) => {
    for (const { tag, attributes } of elementsOf(await markdown(attack))) {
      expect(tags.split(' ')).toContain(tag);
      for (const [name, value] of Object.entries(attributes)) {
        expect(names.split(' ')).toContain(name);
        if (name === 'onClick') expect(typeof value).toBe('function');
        if (name === 'href') expect(value).toMatch(/^(https?|mailto):/);
        if (name === 'href') expect(new URL(String(value)).origin).not.toContain('evil');
      }
    }
  });

  it.each([
    ['quotes', '>'.repeat(20_000)],
    ['lists', Array.from({ length: 300 }, (_, depth) => `${'  '.repeat(depth)}- a`).join('\n')],
    ['brackets', '['.repeat(5000)],
    ['emphasis', '*a '.repeat(3000)],
  ])('with deep nesting or endless search ends quickly: %s', async (_, text) => {
    const started = processorMs();
    expect(textOf(await markdown(text)).length).toBeGreaterThan(0);
    expect(processorMs() - started).toBeLessThan(3000);
  });
});

describe('Growing Markdown', () => {
  const text =
    '# A\n\ntext *a*\n\n- one\n- two\n\n  more\n\n```js\ncode\n\ncode\n```\n\n|a|b|\n|-|-|\n|1|2|\n\nThe **end**.\n';

  it('has the same result as the whole text, however it is split', async () => {
    const { MarkdownReader } = await part;
    const whole = new MarkdownReader().whole(text).map(({ raw }) => raw);
    const reader = new MarkdownReader();
    let blocks: readonly Block[] = [];
    for (let length = 1; length <= text.length; length++) blocks = reader.growing(text.slice(0, length));
    expect(blocks.map(({ raw }) => raw)).toEqual(whole);
  });

  it('is parsed from its last block on, so that a long answer stays fast', async () => {
    const { MarkdownReader } = await part;
    const reader = new MarkdownReader();
    const first = reader.growing(text)[0];
    expect(reader.growing(`${text}\n\nAnd on.`)[0]).toBe(first);
    const started = processorMs();
    let long = '';
    for (let count = 0; count < 2000; count++) {
      long += `Paragraph ${count} with *emphasis* and \`code\`.\n\n`;
      reader.growing(long);
    }
    expect(processorMs() - started).toBeLessThan(3000);
  });
});

describe('Markdown that is slow to parse', () => {
  const hostile: Readonly<Record<string, string>> = {
    'an address that never ends': `${'a.'.repeat(50_000)}@`,
    'emphasis in words': '_a'.repeat(50_000),
    'emphasis on both sides': `${'*'.repeat(50_000)}a${'*'.repeat(50_000)}`,
    'lists in lists': `${'- '.repeat(50_000)}a`,
    'numbers in numbers': `${'1. '.repeat(30_000)}a`,
    'quotes in quotes': `${'> '.repeat(100_000)}a`,
    'lists in quotes': `${'> - '.repeat(25_000)}a`,
    'footnotes after footnotes': '[^1]: a\n'.repeat(20_000),
    'marks of footnotes': `${'[^1]'.repeat(1400)}\n\n[^1]: a`,
    'footnotes that never end': `[^1]: ${'a\n'.repeat(50_000)}`,
    'pieces as long as may be': `${'_a'.repeat(2900)}\n\n`.repeat(10),
  };

  it.each(Object.keys(hostile))('is rendered quickly and completely: %s', async (name) => {
    const text = hostile[name] as string;
    const { MarkdownReader } = await part;
    const before = processorMs();
    const blocks = new MarkdownReader().whole(text);
    expect(processorMs() - before).toBeLessThan(5000);
    expect(blocks.map(({ raw }) => raw).join('')).toBe(text);
    expect(textOf(await markdown(text))).toContain('a');
  });
});
