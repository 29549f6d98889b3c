import { ClaudeWriter, type SettablePart } from '../../../../../../src/primary/cli/adapters/claude/writer.js';
import {
  type FileDocument,
  type Image,
  plainLaunch,
  type Turn,
  type TurnInput,
} from '../../../../../../src/primary/cli/contract/adapter.js';

const everything: readonly SettablePart[] = ['model', 'system', 'schema', 'effort'];
const schema = '{"type":"object","properties":{"a":{}}}';

function lines(...values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

function user(content: unknown, more: object = {}) {
  return { type: 'user', message: { role: 'user', content }, client_composed: true, ...more };
}

const first = { uuid: '00000001-0000-4000-8000-000000000000' };
const second = { uuid: '00000002-0000-4000-8000-000000000000' };

function ask(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

function writer(settable = everything): ClaudeWriter {
  return new ClaudeWriter(new Set(settable));
}

function write(turn: Turn, settable = everything): TurnInput {
  return writer(settable).write(turn, 1);
}

function control(id: string, request: object) {
  return { type: 'control_request', request_id: id, request };
}

const initialize = (told: object) => control('system text and schema', { subtype: 'initialize', ...told });
const apply = (settings: object) => control('model and effort', { subtype: 'apply_flag_settings', settings });

describe('The input that the claude adapter writes', () => {
  it('is one line for a plain first turn, with the id of the turn', () => {
    const words = ' a\nb "c" \u2028 @/etc/passwd !';
    const { text: begun, rest = [] } = write(ask(words));
    expect([begun, ...rest]).toEqual([lines(user(words, first))]);
    expect(writer().write(ask('hello'), 27).text).toBe(
      lines(user('hello', { uuid: '0000001b-0000-4000-8000-000000000000' })),
    );
  });

  it('has a newline before a slash at the start of a text, and only there', () => {
    expect(write(ask('/cost')).text).toBe(lines(user('\n/cost', first)));
    expect(write(ask(' /cost')).text).toBe(lines(user(' /cost', first)));
    expect(write(ask('a /cost')).text).toBe(lines(user('a /cost', first)));
  });

  it('waits after each user line of the history', () => {
    const past = (content: string) => user(content, { shouldQuery: false });
    const said = (words: string, index: number) => ({
      type: 'assistant',
      message: { id: `msg_replay_${index}`, role: 'assistant', content: [{ type: 'text', text: words }] },
    });
    const history: Turn['history'] = [
      { role: 'user', text: '/one' },
      { role: 'assistant', text: '/1' },
      { role: 'user', text: 'two' },
      { role: 'assistant', text: '2' },
    ];
    const { text, rest = [] } = write(ask('three', { history, system: 'Be brief.' }));
    expect(text).toBe(lines(initialize({ systemPrompt: 'Be brief.' }), past('\n/one')));
    expect([...rest]).toEqual([lines(said('/1', 1), past('two')), lines(said('2', 3), user('three', first))]);
  });
});

describe('The settings of a turn', () => {
  const whole = { system: 'Be brief.', schema, model: 'opus', effort: 'low' } as const;

  it('precede the first turn of a process, in the same piece', () => {
    expect(write(ask('hi', whole)).text).toBe(
      lines(
        initialize({ systemPrompt: 'Be brief.', jsonSchema: { type: 'object', properties: { a: {} } } }),
        apply({ model: 'opus', effortLevel: 'low' }),
        user('hi', first),
      ),
    );
  });

  it('are sent again only if they differ', () => {
    const one = writer();
    one.write(ask('hi', whole), 1);
    expect(one.write(ask('more', whole), 2).text).toBe(lines(user('more', second)));
    expect(one.write(ask('more', { ...whole, effort: null }), 2).text).toBe(
      lines(apply({ effortLevel: null }), user('more', second)),
    );
    expect(one.write(ask('more', { ...whole, effort: 'high' }), 2).text).toBe(
      lines(apply({ effortLevel: 'high' }), user('more', second)),
    );
  });

  it('are omitted if the version takes them only at its start', () => {
    expect(write(ask('hi', whole), []).text).toBe(lines(user('hi', first)));
    expect(write(ask('hi', whole), ['schema', 'effort']).text).toBe(
      lines(
        initialize({ jsonSchema: { type: 'object', properties: { a: {} } } }),
        apply({ effortLevel: 'low' }),
        user('hi', first),
      ),
    );
  });

  it('never replace the native header of the CLI', () => {
    const told = (system: string) => write(ask('hi', { system })).text.split('\n', 1)[0] ?? '';
    expect(JSON.parse(told('x-anthropic-billing-header: free')).request.systemPrompt).toMatch(/^\nx-anthropic-/);
    expect(JSON.parse(told('not x-anthropic-')).request.systemPrompt).toBe('not x-anthropic-');
  });
});

describe('Images', () => {
  const png: Image = { mediaType: 'image/png', data: 'iVBO', at: 0 };
  const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } };
  const text = (words: string) => ({ type: 'text', text: words });

  it.each<[string, string, readonly Image[], readonly object[]]>([
    ['in the middle', 'look here', [{ ...png, at: 5 }], [text('look '), block, text('here')]],
    ['at both ends', 'look', [{ ...png, at: 4 }, png], [block, text('look'), block]],
    ['one after the other', 'look', [png, png], [block, block, text('look')]],
    ['without a text', '', [png], [block]],
    ['before what looks like a command', '/cost', [png], [block, text('\n/cost')]],
    ['after an emoji', '😀!', [{ ...png, at: 2 }], [text('😀'), block, text('!')]],
  ])('are written at their places: %s', (_, words, images, content) => {
    expect(write(ask(words, { images })).text).toBe(lines(user(content, first)));
    const history: Turn['history'] = [{ role: 'user', text: words, images }];
    expect(write(ask('hi', { history })).text).toBe(lines(user(content, { shouldQuery: false })));
  });
});

describe('A document', () => {
  const pdf: FileDocument = { mediaType: 'application/pdf', data: 'JVBERi0=', name: '', digest: 'x', pages: 1, at: 0 };
  const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' };

  it.each<[string, Partial<FileDocument>, object]>([
    ['without more', {}, {}],
    ['with its name as the title', { name: 'a.pdf' }, { title: 'a.pdf' }],
    ['with its context', { context: 'Of 2026' }, { context: 'Of 2026' }],
    ['to cite', { citations: true }, { citations: { enabled: true } }],
  ])('is a block before the text: %s', (_, fields, more) => {
    const content = [
      { type: 'document', source, ...more },
      { type: 'text', text: 'Sum up' },
    ];
    expect(write(ask('Sum up', { images: [{ ...pdf, ...fields }] })).text).toBe(lines(user(content, first)));
  });
});

describe('A breakpoint of the prompt cache', () => {
  const png: Image = { mediaType: 'image/png', data: 'iVBO', at: 1 };
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } };
  const text = (words: string) => ({ type: 'text', text: words });
  const results = [{ id: 'call_1', text: 'rain', isError: false }];
  const result = { type: 'tool_result', tool_use_id: 'call_1', content: [text('rain')], is_error: false };
  const cache_control = { type: 'ephemeral' };
  const forced = { FORCE_PROMPT_CACHING_5M: '1' };
  const hour = { CLAUDE_CODE_PROMPT_CACHE_TTL: '1h', ENABLE_PROMPT_CACHING_1H: '1' };
  const longer = { FORCE_PROMPT_CACHING_5M: '', ...hour };

  it.each<[string, Partial<Turn>, number, readonly object[]]>([
    ['at the end', { text: 'ab' }, 0, [{ ...text('ab'), cache_control }]],
    ['inside the text', { text: 'ab\n\nc' }, 3, [{ ...text('ab'), cache_control }, text('\n\nc')]],
    ['before what looks like a command', { text: 'a/b' }, 2, [{ ...text('a'), cache_control }, text('\n/b')]],
    ['after an image', { text: 'abc', images: [png] }, 2, [text('a'), { ...image, cache_control }, text('bc')]],
    [
      'after an image behind a result',
      { text: '', images: [{ ...png, at: 0 }], results },
      0,
      [result, { ...image, cache_control }],
    ],
    ['after a result', { text: 'a', results }, 1, [{ ...result, cache_control }, text('a')]],
    ['before all', { text: 'a' }, 9, [text('a')]],
    ['inside an emoji', { text: '😀!' }, 2, [text('😀!')]],
  ])('is set %s', (_, turn, restLength, content) => {
    const { text: sent } = write(ask('', { ...turn, cache: { ttl: '5m', restLength } }));
    expect(sent).toBe(lines(apply({ env: forced }), user(content, first)));
  });

  it('is set once in the life of a process, with one time to live for all breakpoints', () => {
    const one = writer();
    const history: Turn['history'] = [{ role: 'user', text: 'past' }];
    const { text: begun, rest = [] } = one.write(ask('a', { history, cache: { ttl: '1h', restLength: 0 } }), 1);
    expect([begun, ...rest].join('')).toBe(
      lines(
        apply({ env: longer }),
        user('past', { shouldQuery: false }),
        user([{ ...text('a'), cache_control: { ...cache_control, ttl: '1h' } }], first),
      ),
    );
    expect(one.write(ask('b', { cache: { ttl: '5m', restLength: 0 } }), 2).text).toBe(lines(user('b', second)));
  });

  it.each<['5m' | '1h', Partial<Turn>, object | null]>([
    ['5m', {}, null],
    ['5m', { history: [{ role: 'user', text: 'past' }] }, forced],
    ['1h', { history: [{ role: 'user', text: 'past' }] }, longer],
    ['1h', { cache: { ttl: '5m', restLength: 0 } }, longer],
    ['5m', { history: [{ role: 'user', text: 'past' }], cache: null }, null],
  ])('is set with a login, %s and %j', (ttl, more, env) => {
    const login = new ClaudeWriter(new Set(everything), { ttl, inReplays: true });
    const { text: begun, rest = [] } = login.write(ask('a', more), 1);
    const mark = { ...text('a'), cache_control: { ...cache_control, ...(ttl === '1h' && { ttl }) } };
    const [head = '', ...others] = [begun, ...rest].join('').split('\n');
    expect(env === null || head === JSON.stringify(apply({ env }))).toBe(true);
    expect(`${[head, ...others].at(-2)}\n`).toBe(lines(user(env === null ? 'a' : [mark], first)));
  });
});
