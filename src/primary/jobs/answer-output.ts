import { cliError } from '../../shared/errors.js';
import type { AddedMessage, Citation, CitingBlock, PlacedSearch, ThinkingForm, Thought } from '../../shared/job.js';
import type {
  AnswerEvent,
  PassageCited,
  SearchMade,
  ThoughtDelta,
  ThoughtEnd,
  ToolCall,
} from '../cli/contract/adapter.js';
import type { TurnRecord } from '../conversations/conversation-turn.js';
import { citationsIn } from './citations.js';
import type { Job } from './job.js';

/** Owns the output of one answer that was sent to the caller: text, calls, thoughts and searches. */
export class AnswerOutput {
  readonly #job: Job;
  readonly #record: Pick<TurnRecord, 'addText' | 'addMessage'> | null;
  readonly #thoughts: Thoughts;
  readonly #searches: (PlacedSearch & Pick<Place, 'at'>)[] = [];
  readonly #blocks: { readonly at: number; readonly passages: NonNullable<PassageCited['passage']>[] }[] = [];
  readonly #texts: string[] = [];
  readonly #callIds: string[] = [];
  /** Messages that the model has received. */
  readonly #additions: AddedMessage[] = [];
  /** Sent text in UTF-16 units, and number of calls whose start was sent. */
  readonly #place = { at: 0, calls: 0 };

  /** `record` gets the text for the conversation; null if the job has no conversation. */
  constructor(job: Job, record: Pick<TurnRecord, 'addText' | 'addMessage'> | null) {
    this.#job = job;
    this.#record = record;
    this.#thoughts = new Thoughts(job.request.thinking, (event) => job.events.write(event));
  }

  get wantsThoughts(): boolean {
    return this.#thoughts.areWanted;
  }

  get #isRecorded(): boolean {
    return this.#job.chain !== null || this.#job.request.isStreamed;
  }

  /** All text sent so far; empty unless the job has a chain or is streamed. */
  get text(): string {
    return this.#texts.join('');
  }

  sendText(text: string): void {
    if (text !== '') this.sendEvent({ type: 'text-delta', text });
  }

  /** Sends a part of the answer. */
  sendEvent(event: AnswerEvent): void {
    if (event.type === 'thought-delta' || event.type === 'thought-end')
      return this.#thoughts.addThought(event, this.#place);
    this.#thoughts.closeThought(this.#place);
    if (event.type === 'text-delta') this.#addText(event.text);
    else if (event.type === 'call-start') this.#place.calls = this.#callIds.push(event.id);
    else if (event.type === 'search') this.#addSearch(event);
    else if (event.type === 'passage' && !this.#addPassage(event.passage)) return;
    this.#job.events.write(event);
  }

  /** Records a message that the model has received after the text so far. */
  addMessage(text: string): void {
    this.#thoughts.closeThought(this.#place);
    if (this.#record === null) this.#additions.push({ at: this.#place.at, text });
    this.#record?.addMessage(text);
  }

  #addText(text: string): void {
    this.#place.at += text.length;
    if (this.#isRecorded) this.#texts.push(text);
    this.#record?.addText(text);
  }

  #addSearch({ type: _, ...search }: SearchMade): void {
    this.#searches.push({ ...search, at: this.#place.at, thoughts: this.#thoughts.count });
    this.#job.addSearches(search.count);
  }

  /** Adds a cited passage, or begins a block of text. Returns false for the start of a block after an empty one. */
  #addPassage(passage: PassageCited['passage']): boolean {
    const { at } = this.#place;
    const last = this.#blocks.at(-1);
    if (passage === null && last?.at === at && last.passages.length === 0) return false;
    if (passage === null || last === undefined) this.#blocks.push({ at, passages: [] });
    if (passage !== null) this.#blocks.at(-1)?.passages.push(passage);
    return true;
  }

  /**
   * Sends the missing rest of the final text and returns null; if it contradicts the sent text, returns it for a plain
   * answer. Throws for a stream, because sent text cannot be withdrawn.
   */
  correctText(text: string): string | null {
    const sent = this.text;
    if (this.#isRecorded && text.startsWith(sent)) {
      this.sendText(text.slice(sent.length));
      return null;
    }
    // some programs trim the whole text
    if (this.#isRecorded && withoutBlanks(text) === withoutBlanks(sent)) return null;
    if (this.#job.request.isStreamed) throw broken();
    return text;
  }

  /** Sends the calls that the program did not stream. Throws for a stream if another call was sent. */
  sendMissingCalls(calls: readonly ToolCall[]): void {
    const isPrefix = this.#callIds.every((id, at) => calls[at]?.id === id);
    if (!isPrefix && this.#job.request.isStreamed) throw broken();
    for (const call of calls.slice(this.#callIds.length)) this.sendWholeCall(call);
  }

  sendWholeCall({ id, name, input }: ToolCall): void {
    this.sendEvent({ type: 'call-start', id, name });
    this.sendEvent({ type: 'call-delta', text: input });
  }

  sentCalls(calls: readonly ToolCall[]): ToolCall[] {
    return calls.filter(({ id }) => this.#callIds.includes(id));
  }

  /** Returns all searches, and the links of the answer to their results. `correction`: as `text` of `StrategyEnd`. */
  searches(correction: string | null): { readonly searches: readonly PlacedSearch[]; readonly citations: Citation[] } {
    const searches = this.#searches.map((search) => placedIn(search, this.#place.at, correction !== null));
    return { searches, citations: citationsIn(correction ?? this.text, searches) };
  }

  /**
   * Returns the blocks of the text; none if no block cites a passage. The places in a text that was corrected are
   * unknown. `isCorrected`: whether the final text differs from the sent text.
   */
  blocks(isCorrected: boolean): readonly CitingBlock[] {
    const passages = this.#blocks.flatMap((block) => block.passages);
    if (passages.length === 0) return [];
    return isCorrected ? [{ at: 0, passages }] : this.#blocks.filter(({ at }) => at < this.#place.at);
  }

  /** Returns the messages that the model has received. The places in a text that was corrected are unknown. */
  additions(isCorrected: boolean): readonly AddedMessage[] {
    return isCorrected ? this.#additions.map((each) => ({ ...each, at: 0 })) : this.#additions;
  }

  /**
   * Ends the current thought, and returns all thoughts. `isCorrected`: whether the final text differs from the sent
   * text.
   */
  thoughts(isCorrected: boolean): readonly Thought[] {
    this.#thoughts.closeThought(this.#place);
    return this.#thoughts.in(this.#place.at, isCorrected);
  }
}

function withoutBlanks(text: string): string {
  return text.replace(/\s+/g, '');
}

function broken(): Error {
  return cliError(
    'answer_broken',
    "the connection to the model's API was lost, and the text sent so far is not the answer",
  );
}

/** Position of a thought: the text length in UTF-16 units, and the number of calls, before it. */
type Place = Pick<Thought, 'calls'> & { readonly at: number };

/** Returns the part at its place in the final text, of which `length` units were streamed. */
function placedIn<P extends Pick<Place, 'at'>>(part: P, length: number, isCorrected: boolean) {
  if (isCorrected) return { ...part, at: 0 };
  return { ...part, at: part.at === length ? null : part.at };
}

/** Owns the thoughts of one answer, in the form that the caller requested. */
class Thoughts {
  readonly #form: ThinkingForm | undefined;
  readonly #pass: (event: ThoughtDelta | ThoughtEnd) => void;
  readonly #whole: (Thought & Place)[] = [];
  /** Pieces of the current thought; null between thoughts. */
  #pieces: string[] | null = null;

  /** `pass` gets the events for the caller: each thought has an end. */
  constructor(form: ThinkingForm | undefined, pass: (event: ThoughtDelta | ThoughtEnd) => void) {
    this.#form = form;
    this.#pass = pass;
  }

  get areWanted(): boolean {
    return this.#form !== undefined;
  }

  get count(): number {
    return this.#whole.length;
  }

  addThought(event: ThoughtDelta | ThoughtEnd, place: Place): void {
    if (event.type === 'thought-delta') return this.#grow(event);
    if (event.redacted !== undefined) this.closeThought(place);
    this.#end(event, place);
  }

  /** Ends the current thought, because other output follows. */
  closeThought(place: Place): void {
    if (this.#pieces !== null) this.#end({ type: 'thought-end' }, place);
  }

  /**
   * Returns the thoughts of an answer with this text length. `isCorrected`: whether the final text differs from the
   * streamed text.
   */
  in(length: number, isCorrected: boolean): readonly Thought[] {
    return this.#whole.map((thought) => placedIn(thought, length, isCorrected));
  }

  #grow(event: ThoughtDelta): void {
    this.#pieces ??= [];
    if (this.#form === 'omitted' || event.text === '') return;
    this.#pieces.push(event.text);
    this.#pass(event);
  }

  /** Ends a thought. If the caller wants to see thoughts, an empty one is omitted; words about progress have no marks. */
  #end({ signature, redacted }: ThoughtEnd, { at, calls }: Place): void {
    const text = (this.#pieces ?? []).join('');
    this.#pieces = null;
    const hasMarks = this.#form !== 'progress';
    const marks = hasMarks && {
      ...(signature !== undefined && { signature }),
      ...(redacted !== undefined && { redacted }),
    };
    if (this.#form !== 'omitted' && text === '' && Object.keys(marks).length === 0) return;
    this.#whole.push({ text, ...marks, at, calls });
    this.#pass({ type: 'thought-end', ...marks });
  }
}
