import type { Turn, TurnFailed } from '../../contract/adapter.js';

type Reason = TurnFailed['reason'];

/** What sentences of an error mean, for programs that send no code. The first one that fits counts. */
export type Signs = readonly (readonly [sign: RegExp, reason: Reason])[];

/** The service holds jobs back for these, so no client may bring them about with its own words. */
const heldFor: ReadonlySet<Reason> = new Set(['auth', 'quota']);

/** UTF-16 units of an error that are read. */
const maxWords = 10_000;
/** UTF-16 units of a request that are compared. Of a longer one, anything may stand in the error. */
const maxOwn = 512 * 1024;
/** Strings of the request that are cut out of an error whole. A shorter one is part of many words. */
const minCut = 3;
const maxCut = 1000;
const maxCuts = 32;
/** No sign reaches across this by accident: they allow one character between two words. */
const gap = ' … ';

/**
 * The reason that the words of an error give, without the strings of the request `asked`: an error often repeats the
 * name of the model, or a part of the prompt. `asked` is null where the program has been told nothing of a client.
 */
export function reasonInWords(words: string, signs: Signs, asked: Turn | null): Reason | undefined {
  const own = asked === null ? [] : stringsOf(asked);
  const left = cutOut(words.slice(0, maxWords), own);
  const isOwn = ownPhrases(own);
  const fits = ([sign, reason]: Signs[number]) => {
    const phrases = left.match(new RegExp(sign, `${sign.flags}g`)) ?? [];
    return phrases.some((phrase) => !heldFor.has(reason) || !isOwn(phrase));
  };
  return signs.find(fits)?.[1];
}

/** Those that an error repeats most likely come first. */
function stringsOf({ model, system, schema, text, history, heard = [] }: Turn): readonly string[] {
  const parts = [model, text, system, schema].filter((part) => part !== null);
  return [...parts, ...[...heard, ...history].reverse().map((message) => message.text)];
}

/** The whole strings, such as the name of the model, in whatever case they are repeated. */
function cutOut(words: string, own: readonly string[]): string {
  const trimmed = own.slice(0, maxCuts).map((text) => text.trim());
  const cut = trimmed.filter(({ length }) => length >= minCut && length <= maxCut);
  const longestFirst = cut.sort((a, b) => b.length - a.length);
  return longestFirst.reduce((left, text) => left.replace(new RegExp(escaped(text), 'giu'), gap), words);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** Whether a phrase stands in the request, however it is spelled there: `API_KEY` is `api key`. */
function ownPhrases(own: readonly string[]): (phrase: string) => boolean {
  const length = own.reduce((sum, text) => sum + text.length, 0);
  let lettersOfAll: string | null = null;
  return (phrase) => {
    if (length > maxOwn) return true;
    lettersOfAll ??= own.map(lettersOf).join('\n');
    return lettersOfAll.includes(lettersOf(phrase));
  };
}

/** Without case, blanks and punctuation. */
function lettersOf(text: string): string {
  const folded = text.normalize('NFKC').toUpperCase().toLowerCase();
  return folded.replace(/[^\p{L}\p{N}]+/gu, '');
}

/** What the HTTP status of a model's API means, for programs that tell it. */
export const reasonByStatus: ReadonlyMap<number, TurnFailed['reason']> = new Map([
  [401, 'auth'],
  [402, 'quota'],
  [403, 'auth'],
  [404, 'model_unknown'],
  [413, 'prompt_too_long'],
  [429, 'quota'],
  [503, 'overloaded'],
  [529, 'overloaded'],
]);
