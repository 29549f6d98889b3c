import type { Turn } from '../../contract/adapter.js';
import { promptOf } from '../common/transcript.js';

/** How a program that knows no roles is told system text, history and question on its stdin. */
const templates = {
  /** The texts alone, with an empty line between them: who said what is lost. */
  plain: ({ system, history, text }) => [...(system === null ? [] : [system]), ...textsOf(history), text].join('\n\n'),
  /** A lone question as it is; anything more with a line before each message that no message can forge. */
  transcript: promptOf,
  /** A JSON object a line, the last one with the question. */
  jsonl: ({ system, history, text }) => {
    const instruction = system === null ? [] : [{ role: 'system', content: system }];
    const said = history.map((message) => ({ role: message.role, content: message.text }));
    const lines = [...instruction, ...said, { role: 'user', content: text }];
    return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  },
} as const satisfies Record<string, (turn: Turn) => string>;

export type CommandTemplate = keyof typeof templates;

/** The whole stdin for a turn. */
export function inputOf(turn: Turn, template: CommandTemplate): string {
  return templates[template](turn);
}

function textsOf(history: Turn['history']): string[] {
  return history.map(({ text }) => text);
}
