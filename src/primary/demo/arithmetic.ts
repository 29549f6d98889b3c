import { trimTail } from './text.js';

const asked = /\b(?:what is|what's|whats|how much is|how much|calculate|compute|solve) (.+)$/i;
const signs: Readonly<Record<string, string>> = {
  plus: '+',
  minus: '-',
  times: '*',
  'multiplied by': '*',
  'divided by': '/',
  over: '/',
  x: '*',
  '×': '*',
  '·': '*',
  '÷': '/',
  '−': '-',
};

/** Bounds the depth of the parentheses, and with it the recursion. */
const maxLength = 200;

/** The answer to a sum, or null where the sentence is none. */
export function calculate(sentence: string): string | null {
  const words = trimTail(asked.exec(sentence)?.[1] ?? sentence, ' =?.!,');
  if (words.length > maxLength || !/\d/.test(words)) return null;
  const sum = words.replace(/plus|minus|times|multiplied by|divided by|over|[x×·÷−]/gi, signOf);
  if (!/^[\d\s.+*/()-]+$/.test(sum) || !/\d[\s)]*[+*/-]/.test(sum)) return null;
  const value = new Sum(sum.match(/\d+(?:\.\d+)?|\S/g) ?? []).value();
  return value === null ? null : spoken(sum.replace(/\s+/g, ' '), value);
}

function signOf(word: string): string {
  return signs[word.toLowerCase()] ?? word;
}

function spoken(sum: string, value: number): string {
  if (!Number.isFinite(value)) return `${sum} has no answer that I can give.`;
  const exact = Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return `${sum} ${exact ? '=' : 'is about'} ${Number(value.toPrecision(Number.isInteger(value) ? 16 : 12))}.`;
}

/** Owns the place in one sum that is being read: terms of factors of numbers, brackets and signs. */
class Sum {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  /** Null for what is not a whole sum. */
  value(): number | null {
    const value = this.#terms();
    return this.#at === this.#tokens.length && !Number.isNaN(value) ? value : null;
  }

  #terms(): number {
    let value = this.#factors();
    for (let sign = this.#take('+', '-'); sign !== null; sign = this.#take('+', '-')) {
      value += sign === '+' ? this.#factors() : -this.#factors();
    }
    return value;
  }

  #factors(): number {
    let value = this.#factor();
    for (let sign = this.#take('*', '/'); sign !== null; sign = this.#take('*', '/')) {
      value = sign === '*' ? value * this.#factor() : quotient(value, this.#factor());
    }
    return value;
  }

  #factor(): number {
    if (this.#take('-') !== null) return -this.#factor();
    if (this.#take('(') === null) return Number(this.#tokens[this.#at++] ?? Number.NaN);
    const value = this.#terms();
    return this.#take(')') === null ? Number.NaN : value;
  }

  #take(...wanted: readonly string[]): string | null {
    const token = this.#tokens[this.#at];
    if (token === undefined || !wanted.includes(token)) return null;
    this.#at += 1;
    return token;
  }
}

/** 0 / 0 is Infinity here: NaN stands for what is no sum. */
function quotient(value: number, by: number): number {
  return by === 0 && !Number.isNaN(value) ? Number.POSITIVE_INFINITY : value / by;
}
