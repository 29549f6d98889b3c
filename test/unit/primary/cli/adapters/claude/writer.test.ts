import { ClaudeWriter, type SettablePart } from '../../../../../../src/primary/cli/adapters/claude/writer.js';
import {
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

const first = { uuid: '00000000-0000-4000-8000-000000000001' };
const second = { uuid: '00000000-0000-4000-8000-000000000002' };

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
    expect(write(ask(words))).toEqual({ text: lines(user(words, first)), rest: [], stdin: 'keep-open' });
    expect(writer().write(ask('hello'), 27).text).toBe(
      lines(user('hello', { uuid: '00000000-0000-4000-8000-00000000001b' })),
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
    const { text, rest } = write(ask('three', { history, system: 'Be brief.' }));
    expect(text).toBe(lines(initialize({ systemPrompt: 'Be brief.' }), past('\n/one')));
    expect(rest).toEqual([lines(said('/1', 1), past('two')), lines(said('2', 3), user('three', first))]);
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
