import { callsIn, saidOf, thoughtsIn } from '../../../../../src/features/demo/program/calls.js';

const person = { type: 'object', properties: { name: { type: 'string' } } };
const tools = [
  { name: 'note', schema: person },
  { name: 'look', schema: { type: 'object' } },
];

function wanted(text: string, must?: boolean | string) {
  const calls = callsIn({ type: 'user', text, tools, ...(must !== undefined && { must }) });
  return calls.map(({ name, input }) => [name, input]);
}

describe('The demo model', () => {
  it('calls the tools that a text names at the start of a line', () => {
    expect(wanted('call note {"name": "A}da", "deep": {"a": 1}} and\ncall look')).toEqual([
      ['note', { name: 'A}da', deep: { a: 1 } }],
      ['look', {}],
    ]);
    expect(wanted('call look {"a": ')).toEqual([['look', {}]]);
  });

  it('calls no unknown tool, and none in the middle of a sentence', () => {
    expect(wanted('call other {}\nplease call note')).toEqual([]);
    expect(callsIn({ type: 'user', text: 'call note' })).toEqual([]);
  });

  it('always calls a tool if a call is required', () => {
    expect(wanted('Ada', true)).toEqual([['note', { name: 'Ada' }]]);
    expect(wanted('Ada', 'look')).toEqual([['look', {}]]);
    expect(callsIn({ type: 'user', text: 'Ada', must: true })).toEqual([]);
  });

  it('thinks the text after "think" at the start of a line', () => {
    expect(thoughtsIn({ text: 'think I am asked\nHello\nthink I answer\nI think so' })).toEqual([
      'I am asked',
      'I answer',
    ]);
    expect(thoughtsIn({ text: 'Hello' })).toEqual([]);
  });

  it('gives each call a distinct id', () => {
    const ids = callsIn({ type: 'user', text: 'call look\ncall look', tools }).map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
  });

  it('repeats the results of tools', () => {
    const results = [
      { id: '1', text: 'sun', is_error: false },
      { id: '2', text: 'gone', is_error: true },
    ];
    expect(saidOf(results, new Map([['1', 'look']]))).toBe('The result of look is: sun The error of the tool is: gone');
  });
});
