import { cut } from './text.js';

const maxFacts = 50;
const maxAboutLength = 60;
const maxFactLength = 120;
const maxQuoteLength = 400;

/** Owns what one conversation was told: facts by what they are about (`my dog` → `is Rex`), and the last words. */
export class Memory {
  readonly #facts = new Map<string, string>();
  #name: string | null = null;
  #note: string | null = null;
  #lastPrompt: string | null = null;
  #lastAnswer: string | null = null;

  get name(): string | null {
    return this.#name;
  }

  /** What it was asked to remember, word for word. */
  get note(): string | null {
    return this.#note;
  }

  get lastPrompt(): string | null {
    return this.#lastPrompt;
  }

  get lastAnswer(): string | null {
    return this.#lastAnswer;
  }

  keepName(name: string): void {
    this.#name = name;
    this.keep('my name', `is ${name}`);
  }

  /** The newest facts stay. */
  keep(about: string, fact: string): void {
    const key = keyOf(about);
    this.#facts.delete(key);
    this.#facts.set(key, cut(fact, maxFactLength));
    const [oldest] = this.#facts.keys();
    if (this.#facts.size > maxFacts && oldest !== undefined) this.#facts.delete(oldest);
  }

  keepNote(note: string): void {
    this.#note = cut(note, maxQuoteLength);
  }

  keepPrompt(prompt: string): void {
    this.#lastPrompt = cut(prompt, maxQuoteLength);
  }

  keepAnswer(answer: string): void {
    this.#lastAnswer = cut(answer, maxQuoteLength);
  }

  fact(about: string): string | null {
    return this.#facts.get(keyOf(about)) ?? null;
  }

  /** What it was told last about something of theirs, as a sentence: `my dog is Rex`. */
  newest(): string | null {
    const told = [...this.#facts].filter(([about]) => about.startsWith('my ') && about !== 'my name');
    return told.at(-1)?.join(' ') ?? null;
  }
}

function keyOf(about: string): string {
  return cut(about, maxAboutLength).toLowerCase().replace('favorite', 'favourite').replace('color', 'colour');
}
