import type { Message, Turn } from '../cli/contract/adapter.js';

/** For a program that knows no schemas: the same turn, with the schema told in its text. */
export function askingFor<T extends Turn>(turn: T, schema: string): T {
  const request = `Answer with one JSON value alone, without any other text, that fits this JSON Schema:\n${schema}`;
  return { ...turn, text: `${turn.text}\n\n${request}`, schema: null };
}

/** The turn that has the model repair an answer that did not fit. */
export function repairing<T extends Turn>(asked: T, answer: string, fault: string): T {
  const said: readonly Message[] = [
    { role: 'user', text: asked.text, images: asked.images },
    { role: 'assistant', text: answer },
  ];
  const text = `That does not fit the schema: ${fault}. Answer again, with the whole JSON value alone.`;
  return { ...asked, text, images: [], history: [...asked.history, ...said] };
}
