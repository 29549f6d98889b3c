import type { Message } from '../../shared/job.js';
import { inTurns } from '../../shared/text/turns.js';
import type { AddedMessage, TurnFigures } from '../../shared/turn-figures.js';
import { type StoredText, textOf } from '../store/contract/stored-text.js';

/** Returns the messages of a conversation as the model has seen them: with those that were added during an answer. */
export function withAdditions(
  messages: readonly Message[],
  figuresAt: (index: number) => StoredText | null,
): readonly Message[] {
  const parts = messages.map((message, index) => {
    const additions = additionsIn(figuresAt(index));
    return additions.length === 0 ? null : splitAnswer(message, additions);
  });
  if (parts.every((part) => part === null)) return messages;
  return inTurns(messages.flatMap((message, index) => parts[index] ?? [message]));
}

function additionsIn(figures: StoredText | null): readonly AddedMessage[] {
  if (figures?.includes('"additions"') !== true) return [];
  return (JSON.parse(textOf(figures)) as TurnFigures).additions ?? [];
}

/** Splits an answer at the messages that were added to it. */
function splitAnswer({ role, text }: Message, additions: readonly AddedMessage[]): Message[] {
  const starts = [0, ...additions.map(({ at }) => Math.min(at, text.length))];
  return starts.flatMap((start, index) => {
    const piece: Message = { role, text: text.slice(start, starts[index + 1]) };
    const addition = additions[index];
    return addition === undefined ? [piece] : [piece, { role: 'user' as const, text: addition.text }];
  });
}
