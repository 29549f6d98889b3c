import type { AddedMessage, Message } from '../../shared/job.js';
import { inTurns, splitAnswer } from '../../shared/text/turns.js';
import type { TurnFigures } from '../../shared/turn-figures.js';
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
