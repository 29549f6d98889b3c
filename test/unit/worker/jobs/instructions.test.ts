import type { Message } from '../../../../src/shared/job.js';
import { instructed, type SentPiece } from '../../../../src/worker/jobs/instructions.js';

const note = (instruction: string): SentPiece => ({ instruction });
const said = (message: Message): SentPiece => ({ message });
const user = (text: string): SentPiece => said({ role: 'user', text });
const model = (text: string): SentPiece => said({ role: 'assistant', text });
const result = (id: string, text: string) => ({ id, text, isError: false });
const results = (...texts: readonly string[]): SentPiece =>
  said({ role: 'user', text: '', results: texts.map((text, index) => result(`${index}`, text)) });

/** Returns a line for each text and result in the messages. */
function lines(spoken: readonly Message[]): string[] {
  return spoken.flatMap(({ role, text, results = [] }) => [
    ...results.map((each) => `${each.id}: ${each.text}`),
    ...(text === '' ? [] : [`${role}: ${text}`]),
  ]);
}

describe('The instructions of a client', () => {
  it.each<[string, readonly SentPiece[], readonly string[], readonly string[]]>([
    ['before everything are the system text', [note('a'), note('b'), user('Hi')], ['a', 'b'], ['user: Hi']],
    [
      'before the first answer are the system text',
      [user('Hi'), note('a'), model('Yes')],
      ['a'],
      ['user: Hi', 'assistant: Yes'],
    ],
    ['of a conversation without an answer are the system text', [user('Hi'), note('a')], ['a'], ['user: Hi']],
    [
      'after an answer stand at their places, set apart from what the user says',
      [note('a'), model('Yes'), note('b'), user('So?'), note('c')],
      ['a'],
      [
        'assistant: Yes',
        'user: <system-reminder>\nb\n</system-reminder>',
        'user: So?',
        'user: <system-reminder>\nc\n</system-reminder>',
      ],
    ],
    [
      'that are set apart already stay as they are',
      [model('Yes'), note('<system-reminder>\nb\n</system-reminder>')],
      [],
      ['assistant: Yes', 'user: <system-reminder>\nb\n</system-reminder>'],
    ],
    [
      'behind results belong to the last of them, which needs no text of its own',
      [model('Yes'), results('one', 'two'), note('b'), model('No'), results(''), note('c')],
      [],
      [
        'assistant: Yes',
        '0: one',
        '1: two\n\n<system-reminder>\nb\n</system-reminder>',
        'assistant: No',
        '0: <system-reminder>\nc\n</system-reminder>',
      ],
    ],
    ['that are blank are none', [model('Yes'), results('one'), note(' \n')], [], ['assistant: Yes', '0: one']],
  ])('%s', (_, all, instructions, spoken) => {
    const found = instructed(all);
    expect([found.instructions, lines(found.spoken)]).toEqual([instructions, spoken]);
  });

  it('have their positions in a request that continues an answer', () => {
    const { instructions, spoken } = instructed([note('a'), user('So?')], true);
    expect(instructions).toEqual([]);
    expect(lines(spoken)).toEqual(['user: <system-reminder>\na\n</system-reminder>', 'user: So?']);
  });

  it('do not modify the messages', () => {
    const all = [model('Yes'), results('one'), note('b')];
    const before = structuredClone(all);
    instructed(all);
    expect(all).toEqual(before);
  });

  it('may be thousands of messages', () => {
    const all = Array.from({ length: 20_000 }, () => [model('Yes'), note('b')]).flat();
    expect(instructed(all).spoken).toHaveLength(40_000);
  });
});
