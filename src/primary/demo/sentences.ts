import { cut, trimTail } from './text.js';

/** Rules look no further into a text than this. */
export const heardLength = 4000;

export interface Sentence {
  readonly text: string;
  readonly question: boolean;
}

const borders = /(?<=[!?;…。！？])|(?<=\.)\s|[\r\n]/;
const joints = /(?:,| and| but|, and|, but) (?=(?:my|i|i'm|i am|what|what's|who|how|do|remember|thanks|thank)\b)/i;
const questionWords =
  /^(?:so |then |please |ok |now )?(?:whats?|who|where|which|why|how|when|do|does|did|is|are|can|could|will|would)\b/i;
const requests = /^(?:please )?(?:tell me|say|repeat|remind me)\b/i;

/** What is heard of a text: its sentences, and what `and my …` joins, each on one line. */
export function sentencesOf(text: string): readonly Sentence[] {
  return cut(text, heardLength)
    .replace(/[‘’]/g, "'")
    .split(borders)
    .flatMap((part) => part.replace(/\s+/g, ' ').trim().split(joints))
    .filter((part) => part !== '')
    .map(sentence);
}

function sentence(part: string): Sentence {
  const text = trimTail(part, ' ?.!;:,…。！？');
  return { text, question: /[?？]/.test(part) || questionWords.test(part) || requests.test(part) };
}

const mirror: Readonly<Record<string, string>> = {
  i: 'you',
  me: 'you',
  my: 'your',
  mine: 'yours',
  myself: 'yourself',
  am: 'are',
  "i'm": 'you are',
  "i've": 'you have',
  "i'll": 'you will',
  you: 'me',
  your: 'my',
  yours: 'mine',
  yourself: 'myself',
};

/** The same words from the other side: `my dog` becomes `your dog`. */
export function reflect(words: string): string {
  return cut(words, 200).replace(/[a-z']+/gi, (word) => mirrored(word));
}

function mirrored(word: string): string {
  const key = word.toLowerCase();
  return Object.hasOwn(mirror, key) ? (mirror[key] ?? word) : word;
}
