import { elizaRule, goOn } from './eliza.js';
import { firstOf } from './facts.js';
import { Memory } from './memory.js';
import type { Heard } from './rule.js';
import { heardLength, sentencesOf } from './sentences.js';
import { preciseRules } from './talk.js';
import { cut } from './text.js';

const maxReplies = 4;
const persona = /\b(?:you are|you're|your name is|you are called|named|called) ["']?([^\s"'.,;:!?()<>]{1,40})/giu;
const noPersona = /^(?:not|now|an?|the|my|our|to|in|on|only)$/i;

/** Owns one conversation of the model `eliza`. A replayed turn leaves it as the turn itself would have. */
export class Conversationalist {
  readonly #memory = new Memory();
  #name = 'Eliza';
  #turn = 0;
  #introduced = false;

  instruct(system: string): void {
    this.#name = personaIn(system) ?? this.#name;
  }

  recall(role: 'user' | 'assistant', text: string): void {
    if (role === 'user') this.answer(text);
    else this.#memory.keepAnswer(text);
    this.#introduced = true;
  }

  answer(prompt: string): string {
    const reply = this.#reply(prompt);
    const introduce = !this.#introduced && !reply.startsWith(this.#introduction);
    const answer = introduce ? `${this.#introduction} ${reply}` : reply;
    this.#introduced = true;
    this.#turn += 1;
    this.#memory.keepPrompt(prompt);
    this.#memory.keepAnswer(answer);
    return answer;
  }

  get #introduction(): string {
    return `I am ${this.#name}, a demo: a small program with a few fixed rules, not a language model.`;
  }

  #reply(prompt: string): string {
    const heard = this.#hear(prompt);
    const precise = new Set(heard.map((one) => firstOf(preciseRules, one)).filter((answer) => answer !== null));
    if (precise.size > 0) return [...precise].slice(0, maxReplies).join(' ');
    return `${overflow(prompt)}${this.#vague(heard)}`;
  }

  /** The last sentence that means something to a rule speaks for all. */
  #vague(heard: readonly Heard[]): string {
    for (const one of heard.toReversed()) {
      const answer = elizaRule(one);
      if (answer !== null) return answer;
    }
    return goOn({ question: heard.at(-1)?.question ?? false, turn: this.#turn, memory: this.#memory });
  }

  #hear(prompt: string): readonly Heard[] {
    const sentences = sentencesOf(prompt);
    const scene = {
      memory: this.#memory,
      introduction: this.#introduction,
      turn: this.#turn,
      alone: sentences.length === 1,
    };
    return sentences.map((sentence) => ({ ...sentence, ...scene }));
  }
}

function overflow(prompt: string): string {
  if (prompt.length <= heardLength) return '';
  return `You wrote ${prompt.length} characters, and this demo reads only the first ${heardLength}. `;
}

function personaIn(system: string): string | null {
  for (const [phrase, name = ''] of cut(system, heardLength).matchAll(persona)) {
    const proper = /name is|called|named/i.test(phrase) || /^\p{Lu}/u.test(name);
    if (proper && !noPersona.test(name)) return name;
  }
  return null;
}
