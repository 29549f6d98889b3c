import type { Message } from '../../shared/job.js';
import { messageOf } from './message-parts.js';

/** A piece of a request: an instruction of its client, or a message of the conversation. */
export type SentPiece = { readonly instruction: string } | { readonly message: Message };

/**
 * Instructions from before the first answer are the system text. A later one stands at its place: Claude Code sends another one
 * with each round, and under a new system text no conversation could go on. `isBegun`: an earlier request had an answer.
 */
export function instructed(said: readonly SentPiece[], isBegun = false): { instructions: string[]; spoken: Message[] } {
  const answer = said.findIndex((each) => 'message' in each && each.message.role === 'assistant');
  const start = isBegun ? 0 : answer;
  const instructions: string[] = [];
  const spoken: Message[] = [];
  const reminders: string[] = [];
  for (const [index, each] of said.entries()) {
    if ('message' in each) {
      remind(spoken, reminders.splice(0));
      spoken.push(each.message);
    } else if (start < 0 || index < start) instructions.push(each.instruction);
    else if (each.instruction.trim() !== '') reminders.push(marked(each.instruction));
  }
  remind(spoken, reminders);
  return { instructions, spoken };
}

/** Behind results it belongs to the last of them: a model CLI that waits for results can be brought nothing else. */
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

/** Set apart from what the user says and from what a tool has returned. */
function marked(instruction: string): string {
  return instruction.trimStart().startsWith(`<${mark}>`) ? instruction : `<${mark}>\n${instruction}\n</${mark}>`;
}
