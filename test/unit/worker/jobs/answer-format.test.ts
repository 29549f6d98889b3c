import type { PlacedSearch, Thought } from '../../../../src/shared/job.js';
import { cutsIn, partsIn, slicesOf, ThoughtPieces, thoughtText } from '../../../../src/worker/jobs/answer-format.js';

const call = (id: string) => ({ id, name: 'f', input: '{}', isCustom: false });

function thought(text: string, at: number | null, calls = 0): Thought {
  return { text, at, calls };
}

function search(query: string, at: number | null, thoughts = 0): PlacedSearch {
  return { id: query, query, results: [], count: 1, at, thoughts };
}

function written(
  text: string,
  thoughts: readonly Thought[],
  ids: readonly string[],
  searches: readonly PlacedSearch[] = [],
): string[] {
  const slices = text === '' ? [] : slicesOf(text, cutsIn({ thoughts, searches }));
  const parts = partsIn({ thoughts, searches }, slices, ids.map(call));
  return parts.map((part) => {
    if (part.type === 'call') return `=${part.call.id}`;
    if (part.type === 'search') return `?${part.query}`;
    return part.type === 'text' ? part.text : `~${part.text}`;
  });
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

  it.each<[string, number[], Thought[], string[]]>([
    ['with text before and after them', [0, 1, 3], [], ['a', ' b[1]', 'c[2]']],
    ['behind a thought', [0, 3], [thought('A', 3)], ['a b', '~A', 'c[1]']],
    ['in the same place', [0, 1, 1], [], ['a', ' bc[1][2]']],
  ])('have the passages of their blocks: %s', (_, places, thoughts, expected) => {
    const blocks = places.map((at, index) => ({ at, passages: index === 0 ? [] : [{ index }] }));
    const output = { thoughts, blocks };
    const parts = partsIn(output, slicesOf('a bc', cutsIn(output)), []);
    const marks = (passages: readonly object[] = []) => passages.map((each) => `[${Object.values(each)}]`).join('');
    const shown = parts.map((part) => {
      return part.type === 'text' ? part.text + marks(part.passages) : `~${part.type === 'thought' ? part.text : ''}`;
    });
    expect(shown).toEqual(expected);
  });

  it.each<[string, string, Thought[], PlacedSearch[], string[]]>([
    ['inside the text', 'a b', [], [search('q', 2), search('r', 2)], ['a ', '?q', '?r', 'b']],
    ['before and behind it', 'Hi', [], [search('q', 0), search('r', null)], ['?q', 'Hi', '?r']],
    [
      'between thoughts',
      'Hi',
      [thought('A', 0), thought('B', 0)],
      [search('q', 0, 1), search('r', null, 2)],
      ['~A', '?q', '~B', 'Hi', '?r'],
    ],
  ])('have the searches at their places: %s', (_, text, thoughts, searches, expected) => {
    expect(written(text, thoughts, [], searches)).toEqual(expected);
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
      const written = texts.map((text) => pieces.addText(text)).join('');
      pieces.endThought();
      return written;
    });
    const whole = thoughts.map((texts) => ({ type: 'thought', text: texts.join('') }) as const);
    expect(sent.join('')).toBe(thoughtText(whole));
  });
});
