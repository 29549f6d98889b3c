import { unknownUsage } from '../../../../src/primary/cli/contract/adapter.js';
import { withAdditions } from '../../../../src/primary/conversations/additions.js';
import { storedFigures } from '../../../../src/primary/store/contract/stored-text.js';
import type { AddedMessage } from '../../../../src/shared/job.js';
import type { TurnFigures } from '../../../../src/shared/turn-figures.js';

const question = { role: 'user', text: 'Which towns?' } as const;
const answer = { role: 'assistant', text: 'Let me look. Paris.' } as const;

/** Returns the messages for the model if these were added to the answer. */
function messagesWith(...additions: readonly AddedMessage[]) {
  const marks: Pick<TurnFigures, 'additions'> = additions.length === 0 ? {} : { additions };
  const figures = storedFigures('opus', unknownUsage, marks);
  const messages = withAdditions([question, answer], (index) => (index === 1 ? figures : null));
  return messages.map(({ role, text }) => [role, text]);
}

describe('Messages that were added to an answer', () => {
  it('stand at their places between the parts of the answer', () => {
    expect(messagesWith()).toEqual([
      ['user', question.text],
      ['assistant', answer.text],
    ]);
    expect(messagesWith({ at: 12, text: 'In France.' })).toEqual([
      ['user', question.text],
      ['assistant', 'Let me look.'],
      ['user', 'In France.'],
      ['assistant', ' Paris.'],
    ]);
  });

  it('follow the question if the model had said nothing, and end the conversation if it said nothing more', () => {
    expect(messagesWith({ at: 0, text: 'In France.' })).toEqual([
      ['user', `${question.text}\n\nIn France.`],
      ['assistant', answer.text],
    ]);
    expect(
      messagesWith({ at: 12, text: 'In France.' }, { at: 12, text: 'Or Spain.' }, { at: 999, text: 'Soon.' }),
    ).toEqual([
      ['user', question.text],
      ['assistant', 'Let me look.'],
      ['user', 'In France.\n\nOr Spain.'],
      ['assistant', ' Paris.'],
      ['user', 'Soon.'],
    ]);
  });
});
