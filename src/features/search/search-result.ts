import { z } from 'zod';
import { JsonStructure } from '../../shared/text/json-structure.js';
import { wellFormed, wholeLength } from '../../shared/text/well-formed.js';

/** Link to a page that a search has found. */
interface FoundLink {
  readonly title: string;
  readonly url: string;
}

/** Result of a search, for the model and for the client. */
export interface SearchResult {
  /** Text for the model. */
  readonly text: string;
  readonly links: readonly FoundLink[];
  /** Whether the search has failed. The text is then a message about the failure. */
  readonly isError: boolean;
}

/** Longest text for the model, in UTF-16 units. */
const maxTextLength = 32 * 1024;
/** Limits for links. */
const maxLinks = 20;
const maxTitleLength = 200;
const maxUrlLength = 1000;
/** Largest number of pieces of a result that are read. */
const maxPieces = 200;
/** Limits for the values of a result that are searched for links. */
const maxDepth = 8;
const maxValues = 10_000;
/** Limits for the JSON in the texts of a result. */
const structureLimits = { maxValues: 20_000, maxDepth: 200 };
/** UTF-16 units of all texts without JSON that are searched for links. The model gets no more. */
const maxSearched = maxTextLength;

const piece = z.object({
  type: z.string(),
  text: z.string().optional().catch(undefined),
  uri: z.string().optional().catch(undefined),
  name: z.string().optional().catch(undefined),
  title: z.string().optional().catch(undefined),
  resource: z.object({ text: z.string().optional() }).optional().catch(undefined),
});

const toolResult = z.object({
  content: z
    .array(z.unknown())
    .transform((pieces) => pieces.slice(0, maxPieces).flatMap((each) => piece.safeParse(each).data ?? []))
    .catch([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().nullish().catch(null),
});

/** Reads the answer to `tools/call`; null if it has neither text nor links. */
export function readSearchResult(answer: unknown): SearchResult | null {
  const { data } = toolResult.safeParse(answer);
  if (data === undefined) return null;
  const { content, structuredContent, isError } = data;
  const texts = content.flatMap((each) => textIn(each) ?? []);
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent));
  if (texts.length === 0) return null;
  const links = new Links();
  links.addFrom(structuredContent);
  for (const { type, uri, title, name } of content)
    if (type === 'resource_link' && uri !== undefined) links.addLink(uri, title ?? name);
  for (const text of texts) links.addFromText(text);
  return { text: shortened(texts.join('\n\n')), links: links.all, isError: isError === true };
}

function textIn({ type, text, uri, name, title, resource }: z.infer<typeof piece>): string | undefined {
  if (type === 'text') return text;
  if (type === 'resource') return resource?.text;
  return type === 'resource_link' && uri !== undefined ? `${title ?? name ?? ''} ${uri}`.trim() : undefined;
}

function shortened(text: string): string {
  if (text.length <= maxTextLength) return wellFormed(text);
  return `${wellFormed(text.slice(0, wholeLength(text, maxTextLength)))}\n(The rest of the results is left out.)`;
}

/** Collects the links of one result. The first title of a page counts. */
class Links {
  readonly #titles = new Map<string, string>();
  readonly #structure = new JsonStructure(structureLimits);
  #valuesLeft = maxValues;
  #searchedLeft = maxSearched;

  get all(): readonly FoundLink[] {
    return [...this.#titles].map(([url, title]) => ({ title, url }));
  }

  addLink(url: string, title: string | undefined): void {
    if (this.#titles.size >= maxLinks || this.#titles.has(url)) return;
    if (url.length > maxUrlLength || !/^https?:\/\/[^\s\p{C}]+$/u.test(url) || !URL.canParse(url)) return;
    const line = wellFormed(title ?? '')
      .replace(/\s+/g, ' ')
      .trim();
    this.#titles.set(url, line === '' ? url : line.slice(0, wholeLength(line, maxTitleLength)));
  }

  /** Adds the links of all objects that have a URL. */
  addFrom(value: unknown, depth = 0): void {
    if (typeof value !== 'object' || value === null || depth > maxDepth || this.#valuesLeft-- <= 0) return;
    const { url, link, href, title, name } = value as Readonly<Record<string, unknown>>;
    const target = [url, link, href].find(isString);
    if (target !== undefined) this.addLink(target, [title, name].find(isString));
    for (const key in value) {
      if (this.#valuesLeft <= 0 || this.#titles.size >= maxLinks) return;
      this.addFrom((value as Readonly<Record<string, unknown>>)[key], depth + 1);
    }
  }

  /**
   * Adds the links of a text: URLs in JSON; if the text is not JSON, links of Markdown and bare URLs after a title, in the
   * part of the text that the model may get.
   */
  addFromText(text: string): void {
    const value = this.#jsonIn(text);
    if (value !== undefined) return this.addFrom(value);
    const searched = text.slice(0, this.#searchedLeft);
    this.#searchedLeft -= searched.length;
    let title: string | undefined;
    for (const line of searched.split('\n')) {
      title = titleLine.exec(line)?.[1] ?? title;
      for (const { 0: url, index } of line.matchAll(bareUrl)) {
        const label = labelBefore(line, index);
        this.addLink(url.replace(/[.,;:!?]{1,9}$/, ''), label ?? title);
        if (label === undefined) title = undefined;
      }
      if (this.#titles.size >= maxLinks) return;
    }
  }

  #jsonIn(text: string): object | undefined {
    if (!/^\s*[[{]/.test(text) || this.#structure.countText(text) !== null) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

const maxLabelLength = 300;

/** Returns the label of a link of Markdown whose URL begins here; undefined for any other URL. */
function labelBefore(line: string, at: number): string | undefined {
  if (line.slice(at - 2, at) !== '](') return undefined;
  const before = line.slice(Math.max(0, at - 3 - maxLabelLength), at - 2);
  const label = before.slice(before.lastIndexOf('[') + 1);
  return label === before || label === '' || label.includes(']') ? undefined : label;
}

const titleLine = /^\W{0,10}(?:\d{1,3}\.\s{0,5})?\**title\**:\s{0,5}(.{1,300})/i;
const bareUrl = /https?:\/\/[^\s()<>[\]"'`*]{1,1000}/g;
