import type { Thought } from '../../../../src/shared/job.js';
import { cutsIn, partsIn, slicesOf, ThoughtPieces, thoughtText } from '../../../../src/worker/jobs/answer-format.js';

const call = (id: string) => ({ id, name: 'f', input: '{}', isCustom: false });

function thought(text: string, at: number | null, calls = 0): Thought {
  return { text, at, calls };
}

function written(text: string, thoughts: readonly Thought[], ids: readonly string[]): string[] {
  const slices = text === '' ? [] : slicesOf(text, cutsIn({ thoughts }));
  const parts = partsIn(thoughts, slices, ids.map(call));
  return parts.map((part) =>
    part.type === 'call' ? `=${part.call.id}` : part.type === 'text' ? part.text : `~${part.text}`,
  );
}

describe('The parts of an answer', () => {
  it.each<[string, string, Thought[], string[], string[]]>([
    ['text alone', 'Hi', [], [], ['Hi']],
    ['text and calls', 'Hi', [], ['a', 'b'], ['Hi', '=a', '=b']],
    ['a thought before the text', 'Hi', [thought('A', 0)], ['a'], ['~A', 'Hi', '=a']],
    [
      'thoughts inside it',
      'a b',
      [thought('A', 0), thought('B', 2), thought('C', 2)],
      [],
      ['~A', 'a ', '~B', '~C', 'b'],
    ],
    ['a thought behind the text', 'Hi', [thought('A', null)], ['a'], ['Hi', '~A', '=a']],
    ['a thought inside and one behind', 'a b', [thought('A', 1), thought('B', null)], [], ['a', '~A', ' b', '~B']],
    ['thoughts between calls', '', [thought('A', 0), thought('B', 0, 1)], ['a', 'b'], ['~A', '=a', '~B', '=b']],
    [
      'thoughts between text and calls',
      'Hi',
      [thought('A', null), thought('B', null, 1)],
      ['a', 'b'],
      ['Hi', '~A', '=a', '~B', '=b'],
    ],
    ['a thought alone', '', [thought('A', 0)], [], ['~A']],
  ])('are in order: %s', (_, text, thoughts, calls, expected) => {
    expect(written(text, thoughts, calls)).toEqual(expected);
  });
});

describe('The pieces of streamed thoughts', () => {
  it.each<[string, string[][]]>([
    ['one thought', [['a', 'b']]],
    ['two thoughts', [['a'], ['b', 'c']]],
    ['thoughts without text between others', [[], ['a'], [], [''], ['b']]],
    ['no text at all', [[], ['']]],
  ])('add up to the text of all thoughts: %s', (_, thoughts) => {
    const pieces = new ThoughtPieces();
    const sent = thoughts.map((texts) => {
      const written = texts.map((text) => pieces.add(text)).join('');
      pieces.end();
      return written;
    });
    const whole = thoughts.map((texts) => ({ type: 'thought', text: texts.join('') }) as const);
    expect(sent.join('')).toBe(thoughtText(whole));
  });
});
