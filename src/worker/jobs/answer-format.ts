import type { RelayError } from '../../shared/errors.js';
import type {
  AnswerEvent,
  CallStart,
  JobDone,
  JobEvent,
  JobFailed,
  PlacedSearch,
  SearchMade,
  ServiceTier,
  Thought,
  ToolCall,
  ToolForm,
  ToolForms,
  WaitReason,
} from '../../shared/job.js';
import type { StreamManner } from '../http/event-stream.js';

/** End of an answer: `whole` is a regular end; `length` means that the answer reached the maximum. */
export type Ending = 'whole' | 'stop-sequence' | 'tool-call' | 'length' | 'refusal';

/** Finished answer, as an API format gets it. */
export interface CompletedAnswer {
  readonly requestId: string;
  /** Model that answered, if its CLI has reported it; else the name that the client sent. */
  readonly model: string;
  /** How the calls of some tools are written. */
  readonly forms: ToolForms;
  /** Whether the request offered tools, or a web search. */
  readonly hasTools: boolean;
  /** Whether the client gets the model's thoughts. */
  readonly hasThoughts: boolean;
  /** Rank of the job among those that waited; undefined if the client has named none. */
  readonly tier?: ServiceTier | undefined;
  /** Calls that the client must answer. */
  readonly calls: readonly WrittenCall[];
  /** Output of the model, in order. A text is included if it is not empty, or if there are no calls. */
  readonly parts: readonly AnswerPart[];
  /** Text of the answer, or a placeholder for it: use it only inside JSON strings. */
  readonly text: string;
  /** Whether the text is not empty. */
  readonly hasText: boolean;
  /** Placeholder for the JSON value of a structured answer. */
  readonly value: string | undefined;
  readonly ending: Ending;
  readonly stopSequence: string | null;
  readonly usage: TokenUsage;
  readonly end: JobDone;
}

/** Token counts from the model CLI, else from the service's tokenizer. */
interface TokenUsage {
  /** All input tokens, including cached ones. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Data that is available when a stream begins. */
export type Opening = Pick<CompletedAnswer, 'requestId' | 'model' | 'forms' | 'hasTools' | 'hasThoughts' | 'tier'>;

/**
 * Part of an answer. A call has the form of its tool, and the input of a custom tool arrives in one delta. Each thought
 * has an end, also without text.
 */
export type WrittenEvent =
  | Exclude<AnswerEvent, CallStart>
  | ({ readonly type: 'call-start' } & Omit<WrittenCall, 'input'>);

/** Stream of one answer in the form of an API: server-sent events, or JSON lines. An empty string sends nothing. */
export interface StreamFormat {
  formatBeginning(): string;
  formatPosition(position: number, reason: WaitReason): string;
  formatStart(queueMs: number): string;
  /** Formats a part of the answer. Returns '' for a part that the API has no form for. */
  formatEvent(event: WrittenEvent): string;
  /** Text to send while the stream is silent; a comment by default. */
  ping?(): string;
  /** Formats the end of the answer, which may repeat the whole text inside JSON strings. */
  formatEnd(answer: CompletedAnswer): string;
  formatFailure(error: RelayError): string;
}

/** Form of an API's answers. */
export interface AnswerFormat {
  /** Whether SDKs read the answer. A failure after the start of the job then has the header `x-should-retry: false`. */
  readonly isForSdks: boolean;
  /** Whether the model's refusal is an answer; otherwise it is an error. */
  readonly showsRefusals?: true;
  /** Default: server-sent events. */
  readonly manner?: StreamManner;
  body(answer: CompletedAnswer): object;
  stream(opening: Opening): StreamFormat;
}

/** Writes an event of a job in this format, except the beginning and the end of the answer. */
export function eventIn(format: StreamFormat, event: JobEvent, forms: ToolForms = {}): string {
  switch (event.type) {
    case 'job-admitted':
    case 'job-model':
      return ''; // `formatBeginning` formats the beginning
    case 'job-queued':
      return format.formatPosition(event.position, event.reason);
    case 'job-start':
      return format.formatStart(event.queueMs);
    case 'job-end':
      return ''; // `formatEnd` formats the end
    case 'call-start':
      return format.formatEvent({ ...writtenCall({ ...event, input: '' }, forms), type: 'call-start' });
    default:
      return format.formatEvent(event);
  }
}

/** Builds an answer whose end is known. */
export function completed(
  opening: Opening,
  {
    slices,
    ...answer
  }: Pick<CompletedAnswer, 'text' | 'hasText' | 'value' | 'end'> & {
    /** Text of the answer, split at the thoughts. */
    readonly slices: readonly string[];
  },
): CompletedAnswer {
  const { end, hasText } = answer;
  const { stopSequence } = end;
  const calls = (end.calls ?? []).map((call) => writtenCall(call, opening.forms));
  const model = end.model ?? opening.model;
  const parts = partsIn(end, hasText || calls.length === 0 ? slices : [], calls);
  return { ...opening, ...answer, model, parts, calls, ending: endingOf(end), stopSequence, usage: tokensOf(end) };
}

/** Whether the text of an answer is whole, so that the text of a structured answer is a value. */
export function isWhole(end: JobDone): boolean {
  return end.isCutShort !== true && end.refusal === undefined;
}

function endingOf({ calls = [], isCutShort, stopSequence, refusal }: JobDone): Ending {
  if (refusal !== undefined) return 'refusal';
  if (isCutShort === true) return 'length';
  if (calls.length > 0) return 'tool-call';
  return stopSequence === null ? 'whole' : 'stop-sequence';
}

function tokensOf({ usage, estimate }: JobDone): TokenUsage {
  return {
    input: usage.inputTokens ?? estimate?.inputTokens ?? 0,
    output: usage.outputTokens ?? estimate?.outputTokens ?? 0,
    cacheRead: usage.cacheReadTokens ?? 0,
    cacheWrite: usage.cacheWriteTokens ?? 0,
  };
}

const unknown = { inputTokens: null, outputTokens: null, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };

/** Returns the end of an answer that the model refused, or null for any other failure. */
export function refusedEnd({ failure, answer, outcome: _, ...end }: JobFailed): JobDone | null {
  if (failure.reason !== 'refused') return null;
  const nothing = { model: null, usage: unknown, refusal: { category: null, explanation: null } };
  const plain = { outcome: 'ok', text: null, estimate: null, stopSequence: null, conversation: null } as const;
  return { ...end, ...plain, ...nothing, ...answer };
}

/**
 * Part of an answer. Parts are in the order in which the model has written them; the text parts together are the whole
 * text.
 */
export type AnswerPart =
  /**
   * Piece of the text, or a placeholder that the answer replaces: use it only inside JSON strings. `passages`: passages
   * that it cites.
   */
  | { readonly type: 'text'; readonly text: string; readonly passages?: readonly object[] }
  | { readonly type: 'call'; readonly call: WrittenCall }
  | ({ readonly type: 'thought' } & Pick<Thought, 'text' | 'signature' | 'redacted'>)
  | ({ readonly type: 'search' } & Search);

/** Web search, without its place in the answer. */
export type Search = Omit<SearchMade, 'type'>;

/** Separator of texts that share one field. */
const blankLine = '\n\n';

/** Joins the texts of all thoughts for an API that has one field for them. Returns '' if no thought has a text. */
export function thoughtText(parts: readonly AnswerPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'thought' && part.text !== '' ? [part.text] : []));
  return texts.join(blankLine);
}

/** Separates the thoughts of a stream by a blank line. Joined, the pieces are `thoughtText`. */
export class ThoughtPieces {
  #thought: 'none' | 'open' | 'whole' = 'none';

  /** Returns the text to send for a piece of a thought. */
  addText(text: string): string {
    const isNext = this.#thought === 'whole';
    if (text !== '') this.#thought = 'open';
    return isNext && text !== '' ? blankLine + text : text;
  }

  /** Ends the open thought. Ignores a thought without text. */
  endThought(): void {
    if (this.#thought === 'open') this.#thought = 'whole';
  }
}

/** Thought or search at its place in the answer. */
interface PlacedPart extends Pick<Thought, 'at' | 'calls'> {
  readonly part: AnswerPart;
}

/** Thoughts, searches and blocks of an answer. */
type PlacedBeside = Pick<JobDone, 'thoughts' | 'searches' | 'blocks'>;

function groupedBy<T>(values: readonly T[], keyOf: (value: T) => number): ReadonlyMap<number, readonly T[]> {
  const groups = new Map<number, T[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group === undefined) groups.set(keyOf(value), [value]);
    else group.push(value);
  }
  return groups;
}

/** Returns the thoughts and searches of an answer, in order. An answer with searches has no calls. */
function placedParts({ thoughts = [], searches = [] }: PlacedBeside): PlacedPart[] {
  const searchesBefore = groupedBy(searches, ({ thoughts: before }) => Math.min(before, thoughts.length));
  const placedBefore = (index: number) => (searchesBefore.get(index) ?? []).map(placedSearch);
  const all = thoughts.flatMap(({ at, calls, ...thought }, index): PlacedPart[] => [
    ...placedBefore(index),
    { at, calls, part: { type: 'thought', ...thought } },
  ]);
  return [...all, ...placedBefore(thoughts.length)];
}

function placedSearch({ at, thoughts: _, ...search }: PlacedSearch): PlacedPart {
  return { at, calls: 0, part: { type: 'search', ...search } };
}

/**
 * Returns the positions in the text of an answer at which thoughts and searches stand and blocks begin, in UTF-16 units,
 * without the start.
 */
export function cutsIn(output: PlacedBeside): number[] {
  const places = [...placedParts(output), ...(output.blocks ?? [])].flatMap(({ at }) => (at ? [at] : []));
  return [...new Set(places)].toSorted((a, b) => a - b);
}

/** Splits a text at these positions. */
export function slicesOf(text: string, cuts: readonly number[]): string[] {
  return [0, ...cuts].map((from, index) => text.slice(from, cuts[index]));
}

/** Returns the pieces of the text, each with the passages that its block cites. */
function textParts(slices: readonly string[], cuts: readonly number[], { blocks = [] }: PlacedBeside): AnswerPart[] {
  const blocksAt = groupedBy(blocks, ({ at }) => at);
  return slices.map((text, index) => {
    const passages = (blocksAt.get(cuts[index - 1] ?? 0) ?? []).flatMap((block) => block.passages);
    return { type: 'text', text, ...(passages.length > 0 && { passages }) };
  });
}

/**
 * Returns the parts of an answer in the order in which the model has written them. `slices`: the text, split at the
 * positions of `cutsIn`; empty if there is no text.
 */
export function partsIn(output: PlacedBeside, slices: readonly string[], calls: readonly WrittenCall[]): AnswerPart[] {
  const parts: AnswerPart[] = [];
  const cuts = cutsIn(output);
  const texts = textParts(slices, cuts, output);
  const made = calls.map((call) => ({ type: 'call', call }) as const);
  let [textCount, callCount] = [0, 0];
  for (const { at, calls: before, part } of placedParts(output)) {
    const firstText = textCount;
    while (textCount < texts.length && (at === null || (cuts[textCount] ?? Number.POSITIVE_INFINITY) <= at))
      textCount++;
    parts.push(...texts.slice(firstText, textCount), ...made.slice(callCount, before), part);
    callCount = Math.max(callCount, before);
  }
  return [...parts, ...texts.slice(textCount), ...made.slice(callCount)];
}

/** Call in the form of its tool. */
export interface WrittenCall extends ToolForm {
  readonly id: string;
  /** JSON, or the text of a custom tool. */
  readonly input: string;
}

export function writtenCall({ id, name, input }: ToolCall, forms: ToolForms): WrittenCall {
  const form = Object.hasOwn(forms, name) ? forms[name] : undefined;
  const json = input === '' ? '{}' : input;
  if (form === undefined) return { id, name, isCustom: false, input: json };
  return { ...form, id, input: form.isCustom ? textIn(json) : json };
}

/** Returns the text in the JSON input of a custom tool. */
export function textIn(input: string): string {
  try {
    const value = JSON.parse(input)?.input;
    return typeof value === 'string' ? value : input;
  } catch {
    return input; // the model can write anything
  }
}
