/** What can be typed in a chat beside messages. */
export const chatWords = [
  { word: '/help', argument: '', meaning: 'show this' },
  { word: '/model', argument: '[id]', meaning: 'name the model, or choose another for what follows' },
  { word: '/new', argument: '', meaning: 'start a new conversation' },
  { word: '/history', argument: '', meaning: 'show the conversation so far' },
  { word: '/save', argument: '<file>', meaning: 'write the conversation to a new file, as Markdown' },
  { word: '/exit', argument: '', meaning: 'leave, like Ctrl-D' },
] as const;

type ChatWord = (typeof chatWords)[number]['word'];

/** What a line asks for. */
export type ChatLine =
  | { readonly type: 'message'; readonly text: string }
  | { readonly type: 'word'; readonly word: Exclude<ChatWord, '/exit'>; readonly argument: string }
  | { readonly type: 'unknown'; readonly word: string }
  | { readonly type: 'nothing' }
  | { readonly type: 'leave' };

/** A line that begins with a slash is never a message: a mistyped word is not for the model. Two slashes stand for one. */
export function readLine(line: string): ChatLine {
  const trimmed = line.trim();
  if (trimmed === '') return { type: 'nothing' };
  if (!trimmed.startsWith('/')) return { type: 'message', text: line };
  if (trimmed.startsWith('//')) return { type: 'message', text: trimmed.slice(1) };
  const [, word = '', argument = ''] = /^(\S+)\s*([\s\S]*)$/.exec(trimmed) ?? [];
  if (word === '/exit' || word === '/quit') return { type: 'leave' };
  const known = chatWords.find((candidate) => candidate.word === word)?.word;
  if (known === undefined || known === '/exit') return { type: 'unknown', word };
  return { type: 'word', word: known, argument };
}
