import { valuesIn, withoutThought } from '../../../../src/shared/text/json-in-text.js';

describe('A thought at the start of an answer', () => {
  it.each([
    ['<think>Let me see {"a":0}.</think>\n{"a":1}', '{"a":1}'],
    ['\n<thinking>Hm.</thinking> {"a":1}\n', '{"a":1}'],
    ['Thinking...\nHm.\n...done thinking.\n\n{"a":1}', '{"a":1}'],
    ['A server has omitted the first tag.</think>{"a":1}', '{"a":1}'],
  ])('is removed: %j', (text, left) => {
    expect(withoutThought(text)).toBe(left);
  });

  it.each([
    '{"a":1}',
    '{"a":"<think>no thought</think>"}',
    '{"a":"no thought</think>"}',
    'Text <think>in the middle</think> {"a":1}',
    '<think>without an end {"a":1}',
    '',
  ])('is not a text that only looks like one: %j', (text) => {
    expect(withoutThought(text)).toBe(text);
  });
});

describe('The values in a text', () => {
  it.each<[string, readonly string[]]>([
    ['{"a":1}', ['{"a":1}']],
    ['Here it is: {"a":1}. Done.', ['{"a":1}']],
    ['```json\n{"a":[1,2]}', ['{"a":[1,2]}']],
    ['{"a":1} and {"a":1}', ['{"a":1}', '{"a":1}']],
    ['{"a":{"b":"} ] \\" {"}} [1, -2.5e3, true, null]', ['{"a":{"b":"} ] \\" {"}}', '[1, -2.5e3, true, null]']],
    ['{ not json, but {"a":1}', ['{"a":1}']],
    ['{"a":[1,2', []],
    ['[1}', []],
    ['{"a":"a line\nbreak"}', []],
    ['no value', []],
  ])('are its outermost objects and lists: %j', (text, values) => {
    expect(valuesIn(text)).toEqual(values);
  });

  it('are at most a thousand, and none is nested more deeply', () => {
    expect(valuesIn('[] '.repeat(5000))).toHaveLength(1000);
    expect(valuesIn('['.repeat(1000) + ']'.repeat(1000))).toHaveLength(1);
    expect(valuesIn(`${'{"a":'.repeat(1500)}1${'}'.repeat(1500)}`)).toEqual([]);
  });

  it.each(['[', '{"a":', '[[1,', '{"', '"\\'])('are found in linear time, also among mistakes: %j', (piece) => {
    const timeOf = (length: number) => {
      const text = piece.repeat(length);
      const start = performance.now();
      valuesIn(text);
      return performance.now() - start;
    };
    timeOf(20_000);
    expect(timeOf(160_000)).toBeLessThan(2000); // quadratic time would be minutes
  });
});
