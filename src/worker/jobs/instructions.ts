import type { Message } from '../../shared/job.js';
import { messageOf } from './message-parts.js';

/** Piece of a request: an instruction of the client, or a message of the conversation. */
export type SentPiece = { readonly instruction: string } | { readonly message: Message };

/**
 * Splits a request into system text and conversation. Instructions before the first answer form the system text. Later
 * ones become reminders inside the conversation: Claude Code sends one with each round, and a changed system text would
 * prevent the reuse of the CLI process. `isBegun`: whether the request continues an earlier answer.
 */
export function instructed(
  pieces: readonly SentPiece[],
  isBegun = false,
): { instructions: string[]; spoken: Message[] } {
  const answer = pieces.findIndex((each) => 'message' in each && each.message.role === 'assistant');
  const start = isBegun ? 0 : answer;
  const instructions: string[] = [];
  const spoken: Message[] = [];
  const reminders: string[] = [];
  for (const [index, each] of pieces.entries()) {
    if ('message' in each) {
      remind(spoken, reminders.splice(0));
      spoken.push(each.message);
    } else if (start < 0 || index < start) instructions.push(each.instruction);
    else if (each.instruction.trim() !== '') reminders.push(marked(each.instruction));
  }
  remind(spoken, reminders);
  return { instructions, spoken };
}

/**
 * Adds reminders to the conversation. After results, they extend the last result, because a model CLI that waits for
 * results accepts nothing else.
 */
function remind(spoken: Message[], reminders: readonly string[]): void {
  if (reminders.length === 0) return;
  const { results = [], ...last } = spoken.at(-1) ?? { role: 'user', text: '' };
  const result = results.at(-1);
  if (result === undefined) {
    for (const text of reminders) spoken.push(messageOf('user', [{ type: 'text', text }]));
    return;
  }
  const reminding = { ...result, text: [result.text, ...reminders].filter((text) => text !== '').join('\n\n') };
  spoken.splice(-1, 1, { ...last, results: [...results.slice(0, -1), reminding] });
}

const mark = 'system-reminder';

/** Wraps an instruction in a tag that separates it from texts of users and tools. */
function marked(instruction: string): string {
  return instruction.trimStart().startsWith(`<${mark}>`) ? instruction : `<${mark}>\n${instruction}\n</${mark}>`;
}
