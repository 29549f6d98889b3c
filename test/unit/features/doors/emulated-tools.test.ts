import { withoutTools } from '../../../../src/features/doors/calls-as-text.js';
import { emulated, readAnswer, schemaOfCall } from '../../../../src/features/doors/emulated-tools.js';
import { plainLaunch, type ToolOffer, type Turn } from '../../../../src/primary/cli/contract/adapter.js';

const ofCity = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { name: 'weather', description: 'of a city', schema: JSON.stringify(ofCity) };
const time = { name: 'time', description: 'of day', schema: '{"type":"object"}' };
const offer: ToolOffer = { tools: [weather, time], choice: 'auto', isParallel: true };
const required: ToolOffer = { ...offer, choice: 'required' };
const named: ToolOffer = { ...offer, choice: { name: 'weather' } };

function turn(more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text: 'Hi', history: [], offer, ...more };
}

describe('An emulated turn', () => {
  it('lists the tools in its system text, and asks for a text or one call', () => {
    const { turn: told, schema } = emulated(turn({ system: 'Be kind.' }), offer, null);
    expect(told.system).toMatch(/^Be kind\.\n\nYou can call the tools below/);
    expect(told.system).toContain(`- weather: of a city\n  Its arguments: ${weather.schema}`);
    expect(told).not.toHaveProperty('offer');
    expect(JSON.parse(schema)).toMatchObject({
      properties: { kind: { enum: ['text', 'call'] }, text: { type: 'string' }, name: { enum: ['weather', 'time'] } },
      required: ['kind'],
    });
  });

  it('asks for a structured value as its text if the client requests one', () => {
    const { schema } = emulated(turn(), offer, weather.schema);
    expect(JSON.parse(schema)).toMatchObject({ properties: { text: ofCity } });
  });

  it('adjusts the references inside the schema of that value', () => {
    const list = { $defs: { n: { type: 'number' } }, properties: { a: { $ref: '#/$defs/n' }, b: { $ref: '#' } } };
    const { schema } = emulated(turn({ stop: ['}'] }), offer, JSON.stringify(list));
    expect(JSON.parse(schema).properties.text.properties).toEqual({
      a: { $ref: '#/properties/text/$defs/n' },
      b: { $ref: '#/properties/text' },
    });
    expect(emulated(turn({ stop: ['}'] }), offer, null).turn).not.toHaveProperty('stop');
  });

  it('asks for nothing but a call if one is required', () => {
    const { turn: told, schema } = emulated(turn(), required, null);
    expect(told.system).toMatch(/^You must call one of the tools below/);
    expect(JSON.parse(schema)).toMatchObject({
      properties: { kind: { enum: ['call'] } },
      required: ['kind', 'name', 'arguments'],
    });
    expect(JSON.parse(schema).properties).not.toHaveProperty('text');
  });

  it('asks for the arguments of the one function that must be called', () => {
    const { turn: told, schema } = emulated(turn(), named, null);
    expect(told.system).toBeNull();
    expect(JSON.parse(schema)).toEqual({ title: 'weather', description: 'of a city', ...ofCity });
  });

  it('includes earlier calls and results as text, with images at their places', () => {
    const image = { mediaType: 'image/png', data: 'eA==', at: 2 } as const;
    const asked = turn({
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: 'I look.', calls: [{ id: '1', name: 'weather', input: '{"city":"Ulm"}' }] },
      ],
      text: 'So?',
      images: [{ ...image, at: 0 }],
      results: [{ id: '1', text: 'Rain', images: [image], isError: true }],
    });
    const plain = withoutTools(asked);
    expect(plain.history[1]).toEqual({
      role: 'assistant',
      text: 'I look.\n\n{"kind": "call", "name": "weather", "arguments": {"city":"Ulm"}}',
    });
    expect(plain.text).toBe('Error of weather (1):\nRain\n\nSo?');
    expect(plain.images?.map(({ at }) => at)).toEqual([
      'Error of weather (1):\nRa'.length,
      'Error of weather (1):\nRain\n\n'.length,
    ]);
    expect(plain).not.toHaveProperty('results');
  });
});

describe('The answer to an emulated turn', () => {
  it.each([
    ['{"kind":"text","text":"Sun"}', offer, false, { kind: 'text', text: 'Sun' }],
    ['{"kind":"text","text":{"city":"Ulm"}}', offer, true, { kind: 'text', text: '{"city":"Ulm"}' }],
    [
      '{"kind":"call","name":"time","arguments":{"a":1}}',
      offer,
      false,
      { kind: 'call', name: 'time', input: '{"a":1}' },
    ],
    [
      '{"kind":"call","name":"time"}',
      offer,
      false,
      { kind: 'fault', fault: 'an object of the kind call must have the fields name and arguments' },
    ],
    ['{"kind":"text"}', offer, false, { kind: 'fault', fault: 'an object of the kind text must have the field text' }],
    ['{"city":"Ulm"}', named, false, { kind: 'call', name: 'weather', input: '{"city":"Ulm"}' }],
  ])('%s is parsed', (value, wanted, hasSchema, answer) => {
    expect(readAnswer(value, wanted, hasSchema)).toEqual(answer);
  });

  it('is checked against the schema of its tool', () => {
    expect([schemaOfCall(offer, 'weather'), schemaOfCall(offer, 'other')]).toEqual([weather.schema, '{}']);
  });
});
