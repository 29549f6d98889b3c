import { Conversationalist } from './conversationalist.js';
import type { Model } from './protocol.js';

/** One side of a conversation. Nothing that is said to it makes it throw. */
export interface Voice {
  instruct(system: string): void;
  /** Hears of an earlier turn. */
  recall(role: 'user' | 'assistant', text: string): void;
  answer(text: string): string;
}

export const models: readonly Model[] = [
  {
    id: 'eliza',
    name: 'Eliza',
    description: 'A demo: a small rule-based conversationalist that remembers what it was told.',
    default: true,
  },
  { id: 'echo', name: 'Echo', description: 'A demo: answers with the prompt, byte for byte.', default: false },
];

const echo: Voice = { instruct: () => undefined, recall: () => undefined, answer: (text) => text };

/** Null for a model that does not exist. */
export function voiceOf(model: string): Voice | null {
  if (model === 'eliza') return new Conversationalist();
  return model === 'echo' ? echo : null;
}
