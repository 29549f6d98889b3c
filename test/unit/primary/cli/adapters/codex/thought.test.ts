import { CodexThought } from '../../../../../../src/primary/cli/adapters/codex/thought.js';

const delta = (text: string) => ({ type: 'thought-delta', text });
const end = { type: 'thought-end' };

describe('A thought of codex', () => {
  it('is streamed piece by piece, with a blank line between the parts of its summary', () => {
    const thought = new CodexThought();
    const events = [
      ...thought.add('summary', 0, 'Read'),
      ...thought.add('summary', 0, 'ing'),
      ...thought.add('summary', 1, 'Answering'),
      ...thought.complete(['Reading', 'Answering'], []),
    ];
    expect(events).toEqual([delta('Read'), delta('ing'), delta('\n\nAnswering'), end]);
  });

  it('is sent once if the program streams it in two forms', () => {
    const thought = new CodexThought();
    const events = [
      ...thought.add('content', 0, 'Hm'),
      ...thought.add('summary', 0, 'Thinking'),
      ...thought.complete([], []),
    ];
    expect(events).toEqual([delta('Hm'), end]);
  });

  it('is sent at its end if it was not streamed', () => {
    const thought = new CodexThought();
    expect(thought.complete(['Reading', 'Answering'], ['Hm'])).toEqual([delta('Reading\n\nAnswering'), end]);
    expect(thought.complete([], ['Hm'])).toEqual([delta('Hm'), end]);
    expect(thought.complete([], [])).toEqual([end]);
  });

  it('starts afresh after another one', () => {
    const thought = new CodexThought();
    thought.add('summary', 3, 'one');
    thought.complete(['one'], []);
    expect(thought.add('content', 0, 'two')).toEqual([delta('two')]);
  });
});
