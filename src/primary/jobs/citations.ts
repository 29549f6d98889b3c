import type { Citation, PlacedSearch } from '../../shared/job.js';

/** Maximum number of citations of an answer, and length of its text that is searched for them. */
const maxCitations = 100;
const maxLength = 256 * 1024;
/** Maximum length of the text of a link. */
const maxLabelLength = 300;

/** Matches a character that continues a URL. */
const urlCharacter = /[\w/?=&%#~+-]/;

/** Returns the links of an answer to results of its searches, in order: links of Markdown as a whole, and bare URLs. */
export function citationsIn(answer: string, searches: readonly PlacedSearch[]): Citation[] {
  const text = answer.slice(0, maxLength);
  const titles = new Map(searches.flatMap(({ results }) => results.map(({ url, title }) => [url, title] as const)));
  const citations: Citation[] = [];
  for (const [url, title] of titles) {
    for (let at = text.indexOf(url); at >= 0 && citations.length < maxCitations; at = text.indexOf(url, at + 1)) {
      if (!urlCharacter.test(text[at + url.length] ?? ' '))
        citations.push({ url, title, ...linkAround(text, at, url) });
    }
  }
  return citations.toSorted((a, b) => a.start - b.start);
}

function linkAround(text: string, at: number, url: string): Pick<Citation, 'start' | 'end'> {
  const end = at + url.length;
  const label = text.slice(Math.max(0, at - maxLabelLength), at);
  const [link] = /\[[^[\]\n]*\]\($/.exec(label) ?? [];
  return link !== undefined && text[end] === ')' ? { start: at - link.length, end: end + 1 } : { start: at, end };
}
