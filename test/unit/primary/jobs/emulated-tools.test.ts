import { type Message, plainLaunch, type ToolOffer, type Turn } from '../../../../src/primary/cli/contract/adapter.js';
import { emulated, readAnswer, schemaOfCall, withoutTools } from '../../../../src/primary/jobs/emulated-tools.js';
import { check } from '../../../../src/primary/threads/schema-thread.js';

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [
  { name: 'get_weather', description: 'The weather of a city.', schema: JSON.stringify(city) },
  { name: 'now', description: '', schema: '{"type":"object"}' },
];
const offerOf = (choice: ToolOffer['choice'] = 'auto'): ToolOffer => ({ tools, choice, isParallel: true });
const offer = offerOf();

const turnOf = (turn: Partial<Turn> = {}): Turn => ({ ...plainLaunch(null), text: 'Hello', history: [], ...turn });
const image = (at: number) => ({ mediaType: 'image/png', data: 'AAAA', at }) as const;

const called: Message = {
  role: 'assistant',
  text: 'I look.',
  calls: [
    { id: 'a', name: 'get_weather', input: '{"city": "Rome"}' },
    { id: 'b', name: 'now', input: '{' },
  ],
};
const lines = [
  '{"kind":"call","id":"a","name":"get_weather","arguments":{"city":"Rome"}}',
  '{"kind":"call","id":"b","name":"now","arguments":"{"}',
];

function fits(schema: string, value: unknown): boolean {
  return check({ schema, text: JSON.stringify(value) }).kind === 'fits';
}

describe('a turn with emulated tools', () => {
  it('has the tools and the form of an answer behind its system text', () => {
    const { turn, schema } = emulated(turnOf({ system: 'Be kind.', offer, stop: ['}'] }), offer, null);
    expect(turn).toEqual({ ...turnOf(), system: expect.stringMatching(/^Be kind\.\n\nYou can call /), schema });
    expect(turn.system).toContain('Tool: get_weather\nThe weather of a city.\nJSON Schema of its arguments: {"type"');
    expect(turn.system).toContain('Tool: now\nJSON Schema of its arguments: {"type":"object"}');
    expect(turn.system).toContain('{"kind":"text","text":"<your answer>"}');
  });

  it('has a system text where the client has none', () => {
    expect(emulated(turnOf(), offer, null).turn.system).toMatch(/^You can call /);
  });

  it('allows an answer in text, or one call of a tool', () => {
    const { schema } = emulated(turnOf(), offer, null);
    expect(fits(schema, { kind: 'text', text: 'Hi' })).toBe(true);
    expect(fits(schema, { kind: 'call', name: 'now', arguments: {} })).toBe(true);
    expect(fits(schema, { kind: 'call', name: 'later', arguments: {} })).toBe(false);
    expect(fits(schema, { text: 'Hi' })).toBe(false);
    expect(fits(schema, [{ kind: 'text', text: 'Hi' }])).toBe(false);
  });

  it('allows nothing but a call where one is required', () => {
    const { turn, schema } = emulated(turnOf(), offerOf('required'), null);
    expect(fits(schema, { kind: 'call', name: 'now', arguments: {} })).toBe(true);
    expect(fits(schema, { kind: 'text', text: 'Hi' })).toBe(false);
    expect(fits(schema, { kind: 'call', name: 'now' })).toBe(false);
    expect(turn.system).not.toContain('"kind":"text"');
  });

  it('has the arguments of the function alone where that one must be called', () => {
    const { turn, schema } = emulated(turnOf(), offerOf({ name: 'get_weather' }), null);
    expect(JSON.parse(schema)).toEqual({ title: 'get_weather', description: 'The weather of a city.', ...city });
    expect(turn.system).toContain('answer with its arguments alone');
    expect(turn.system).not.toContain('now\n');
  });

  it("keeps the title and the description of the function's own schema", () => {
    const schema = '{"title":"T","description":"D","type":"object"}';
    const own = { tools: [{ name: 'f', description: 'd', schema }], choice: { name: 'f' }, isParallel: true };
    expect(JSON.parse(emulated(turnOf(), own, null).schema)).toEqual(JSON.parse(schema));
  });

  it("takes a text that fits the client's own schema, with its references", () => {
    const own = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { default: { $ref: '#/definitions/n' }, next: { $ref: '#' }, word: { enum: [{ $ref: '#' }] } },
      definitions: { n: { type: 'number' } },
      required: ['default'],
    };
    const { turn, schema } = emulated(turnOf(), offer, JSON.stringify(own));
    expect(fits(schema, { kind: 'text', text: { default: 1, next: { default: 2 }, word: { $ref: '#' } } })).toBe(true);
    expect(fits(schema, { kind: 'text', text: { default: 1, next: {} } })).toBe(false);
    expect(fits(schema, { kind: 'text', text: 'one' })).toBe(false);
    expect(fits(schema, { kind: 'call', name: 'now', arguments: {} })).toBe(true);
    expect(turn.system).toContain('a value that fits the schema');
  });

  it('leaves a schema with an $id as it is', () => {
    const own = { $id: 'urn:x', $ref: '#/$defs/n', $defs: { n: { type: 'number' } } };
    const { schema } = emulated(turnOf(), offer, JSON.stringify(own));
    expect(fits(schema, { kind: 'text', text: 1 })).toBe(true);
    expect(fits(schema, { kind: 'text', text: 'one' })).toBe(false);
  });
});

describe('the calls and results of a turn as text', () => {
  it('stand in the history, each call in a line', () => {
    const results = [
      { id: 'b', text: 'noon', isError: false },
      { id: 'a', text: 'no such city', isError: true },
    ];
    const history: readonly Message[] = [called, { role: 'user', text: 'Go on.', results }];
    expect(withoutTools(turnOf({ offer, history })).history).toEqual([
      { role: 'assistant', text: `I look.\n${lines.join('\n')}` },
      { role: 'user', text: 'Result of now (b):\nnoon\n\nError of get_weather (a):\nno such city\n\nGo on.' },
    ]);
  });

  it('stand before the text of the turn, with the images where they were', () => {
    const results = [{ id: 'a', text: 'sun', images: [image(3)], isError: false }];
    const turn = withoutTools(turnOf({ history: [called], text: 'And?', results, images: [image(4)] }));
    expect(turn).not.toHaveProperty('results');
    expect(turn.text).toBe('Result of get_weather (a):\nsun\n\nAnd?');
    expect(turn.images?.map(({ at }) => turn.text.slice(0, at))).toEqual([
      'Result of get_weather (a):\nsun',
      'Result of get_weather (a):\nsun\n\nAnd?',
    ]);
  });

  it('knows the calls that the process has made itself', () => {
    const results = [{ id: 'b', text: '', isError: false }];
    const turn = withoutTools(turnOf({ heard: [{ ...called, text: '' }], text: '', results }));
    expect(turn.heard).toEqual([{ role: 'assistant', text: lines.join('\n') }]);
    expect(turn.text).toBe('Result of now (b):\n');
  });

  it('names no tool for a call that is not there', () => {
    const results = [{ id: 'x', text: 'ok', isError: false }];
    expect(withoutTools(turnOf({ text: '', results })).text).toBe('Result of the call (x):\nok');
  });

  it('leaves a turn without any as it is', () => {
    const turn = turnOf({ history: [{ role: 'user', text: 'Hi', images: [image(0)] }], stop: ['.'], images: [] });
    expect(withoutTools(turn)).toEqual(turn);
  });
});

describe('an answer with emulated tools', () => {
  it.each([
    [
      { kind: 'text', text: 'Hi' },
      { kind: 'text', text: 'Hi' },
    ],
    [
      { kind: 'call', id: 'a', name: 'now', arguments: { a: [1] } },
      { kind: 'call', name: 'now', input: '{"a":[1]}' },
    ],
    [
      { kind: 'call', name: 'now' },
      { kind: 'call', name: 'now', input: '{}' },
    ],
    [
      { kind: 'call', name: 'now', arguments: '{"a":1}' },
      { kind: 'call', name: 'now', input: '{"a":1}' },
    ],
    [[], { kind: 'fault', fault: 'the answer is no JSON object' }],
    [{ kind: 'other' }, { kind: 'fault', fault: '"kind" must be "text" or "call"' }],
    [{ kind: 'text' }, { kind: 'fault', fault: '"text" must be a string' }],
    [
      { kind: 'call', name: 'no' },
      { kind: 'fault', fault: '"name" must be the name of one of the tools' },
    ],
    [
      { kind: 'call', name: 'now', arguments: '{' },
      { kind: 'fault', fault: '"arguments" must be an object' },
    ],
  ])('%j', (value, answer) => {
    expect(readAnswer(value, offer, false)).toEqual(answer);
  });

  it("has a text that is the client's own value, as JSON", () => {
    expect(readAnswer({ kind: 'text', text: { a: 1 } }, offer, true)).toEqual({ kind: 'text', text: '{"a":1}' });
    expect(readAnswer({ kind: 'text' }, offer, true)).toEqual({ kind: 'fault', fault: '"text" is missing' });
  });

  it('is no text where a call is required', () => {
    const fault = { kind: 'fault', fault: '"kind" must be "call"' };
    expect(readAnswer({ kind: 'text', text: 'Hi' }, offerOf('required'), false)).toEqual(fault);
  });

  it('is the arguments themselves where one function must be called', () => {
    const answer = { kind: 'call', name: 'get_weather', input: '{"kind":"text","text":"Hi"}' };
    expect(readAnswer({ kind: 'text', text: 'Hi' }, offerOf({ name: 'get_weather' }), false)).toEqual(answer);
  });

  it('has arguments that its tool can check', () => {
    expect(schemaOfCall(offer, 'get_weather')).toBe(JSON.stringify(city));
    expect(() => schemaOfCall(offer, 'no')).toThrow('no tool is called no');
  });
});
