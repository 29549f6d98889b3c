import { randomUUID } from 'node:crypto';
import {
  addedUsage,
  type Message,
  type ToolCall,
  type ToolOffer,
  type ToolResult,
  type Turn,
  type Usage,
} from '../../primary/cli/contract/adapter.js';
import { isEmulated } from '../../primary/cli/models.js';
import type { AnswerTarget, AnswerTurns, RepairedEnd, RunTurn } from '../../primary/jobs/answer-turns.js';
import { isCallEvent } from '../../primary/jobs/answer-turns.js';
import type { StrategyEnd } from '../../primary/jobs/answered.js';
import { answerWithText } from '../../primary/jobs/plain-text.js';
import { cliError } from '../../shared/errors.js';
import type { SearchMade } from '../../shared/job.js';
import { emulatedTurns } from '../doors/emulated-tools.js';
import type { SearchServer } from './search-server.js';

const toolName = 'web_search';
const maxQueryLength = 1000;
/** Number of refused calls after which the job fails: the model would call the tool forever. */
const maxRefusals = 10;

const offer: ToolOffer = {
  tools: [
    {
      name: toolName,
      description:
        'Searches the web, and returns texts and URLs of pages. Call it for facts that you do not know or that change. Name the pages of your answer as Markdown links.',
      schema: JSON.stringify({
        type: 'object',
        properties: { query: { type: 'string', description: 'What to search for' } },
        required: ['query'],
        additionalProperties: false,
      }),
    },
  ],
  choice: 'auto',
  isParallel: false,
};

/** Answers with the text of the model, which may search the web by a tool of the relay. */
export function answerWithSearches(turns: AnswerTurns, turn: Turn, parts: SearchParts): Promise<StrategyEnd> {
  return answerWithText(turns, { ...turn, offer }, (each, target) => new SearchRounds(turns, parts, target).run(each));
}

interface SearchParts {
  readonly server: Pick<SearchServer, 'find'>;
  /** Longest text of an answer. */
  readonly maxOutputBytes: number;
}

/** Owns the turns of one answer: a turn that ends with calls of the tool is followed by one with the results. */
class SearchRounds {
  readonly #turns: AnswerTurns;
  readonly #parts: SearchParts;
  readonly #target: AnswerTarget;
  readonly #isEmulated: boolean;
  #refusals = 0;

  constructor(turns: AnswerTurns, parts: SearchParts, target: AnswerTarget) {
    this.#turns = turns;
    this.#parts = parts;
    this.#target = target;
    this.#isEmulated = isEmulated(turns.extras, offer);
  }

  async run(turn: Turn): Promise<RepairedEnd> {
    const run: RunTurn = this.#isEmulated ? emulatedTurns(this.#turns) : this.#turns.run;
    const whole = new WholeText(this.#target, this.#parts.maxOutputBytes);
    let end = await run(turn, whole.target);
    let { usage, isRepaired = false } = end;
    let current = turn;
    while (hasCalls(end)) {
      const { calls } = end;
      const answer: Message = { role: 'assistant', text: whole.endTurn(end), calls };
      const history = [...current.history, questionIn(current), answer];
      const results = await this.#resultsOf(calls);
      current = { ...turn, text: '', images: [], results, history };
      const isHeld = !this.#isEmulated && this.#turns.processes.current.process.isReusable;
      if (!isHeld) await this.#turns.processes.acquireAnother();
      end = await run(isHeld ? { ...current, history: [] } : current, whole.target);
      usage = isHeld ? usageOfRounds(usage, end.usage) : addedUsage(usage, end.usage);
      isRepaired ||= end.isRepaired === true;
    }
    const { calls: _, ...ended } = end;
    whole.endTurn(end);
    return { ...ended, text: whole.correction, usage, isRepaired };
  }

  async #resultsOf(calls: readonly ToolCall[]): Promise<ToolResult[]> {
    const results: ToolResult[] = [];
    for (const call of calls) results.push({ id: call.id, ...(await this.#resultOf(call)) });
    return results;
  }

  async #resultOf({ name, input }: ToolCall): Promise<Pick<ToolResult, 'text' | 'isError'>> {
    const { job } = this.#turns;
    const { client, search = {} } = job.request;
    const query = queryIn(input);
    if (name !== toolName) return this.#refuse(`There is no tool ${name}.`, null);
    if (query === null)
      return this.#refuse(`The argument query must be a text of 1 to ${maxQueryLength} characters.`, {
        ...{ query: '', error: 'invalid_tool_input' },
      });
    if (job.searchesLeft === 0)
      return this.#refuse('No further search is allowed for this answer. Answer with what you know.', {
        ...{ query, error: 'max_uses_exceeded' },
      });
    const { text, links, isError } = await this.#parts.server.find(query, search, client, job.signal);
    this.#send({ query, results: links, count: 1, ...(isError && { error: 'unavailable' }) });
    return { text, isError };
  }

  #refuse(text: string, shown: Required<Pick<SearchMade, 'query' | 'error'>> | null) {
    if (++this.#refusals > maxRefusals)
      throw cliError('other', `the model called its tools more than ${maxRefusals} times without a permitted search`);
    if (shown !== null) this.#send({ ...shown, results: [], count: 0 });
    return { text, isError: true };
  }

  #send(search: Omit<SearchMade, 'type' | 'id'>): void {
    this.#target.write({ type: 'search', id: `search_${randomUUID()}`, ...search });
  }
}

/** Adds the usage of two turns of one process. A figure that the first did not report is part of the second. */
function usageOfRounds(first: Usage, second: Usage): Usage {
  const reported = Object.fromEntries(Object.entries(first).map(([name, figure]) => [name, figure ?? 0]));
  return addedUsage(reported as Usage, second);
}

type CallingEnd = RepairedEnd & { readonly calls: readonly ToolCall[] };

/** Whether the answer continues after the results of calls. Calls of a message that was cut short are left out. */
function hasCalls(end: RepairedEnd): end is CallingEnd {
  return end.calls !== undefined && end.calls.length > 0 && end.isCutShort !== true;
}

function questionIn({ text, images, results }: Turn): Message {
  return { role: 'user', text, ...(images && { images }), ...(results && { results }) };
}

/** Returns the query in the input of a call; null if there is none, or if it is too long. */
function queryIn(input: string): string | null {
  try {
    const { query } = Object(JSON.parse(input)) as { readonly query?: unknown };
    const text = typeof query === 'string' ? query.trim() : '';
    return text === '' || text.length > maxQueryLength ? null : text;
  } catch {
    return null;
  }
}

/** Owns the text of an answer with several turns. Each of its texts begins a paragraph. */
class WholeText {
  /** Target of the turns. Calls are not passed on, because the relay answers them. */
  readonly target: AnswerTarget;
  readonly #maxBytes: number;
  /** Pieces of the current turn. */
  readonly #pieces: string[] = [];
  /** Texts of the turns that have ended, without empty ones. */
  readonly #texts: string[] = [];
  #bytes = 0;
  #isCorrected = false;

  constructor(target: AnswerTarget, maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.target = {
      ...target,
      write: (event) => {
        if (event.type === 'text-delta') this.#addText(event.text, target);
        else if (!isCallEvent(event)) target.write(event);
      },
    };
  }

  #addText(text: string, target: AnswerTarget): void {
    if (text === '') return;
    const isFirst = this.#pieces.push(text) === 1;
    target.write({ type: 'text-delta', text: isFirst && this.#texts.length > 0 ? paragraph + text : text });
  }

  /** Ends a turn, and returns its text. Throws if the whole text is too long. */
  endTurn({ text: corrected }: Pick<RepairedEnd, 'text'>): string {
    const streamed = this.#pieces.splice(0).join('');
    const text = corrected ?? streamed;
    this.#isCorrected ||= corrected !== null;
    if (text !== '') this.#texts.push(text);
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes <= this.#maxBytes) return text;
    const limit = `${this.#maxBytes} bytes (MODEL_API_MAX_OUTPUT_BYTES)`;
    throw cliError('output_too_large', `the answer is longer than ${limit}`);
  }

  /** The whole text if it differs from the streamed one; null otherwise. */
  get correction(): string | null {
    return this.#isCorrected ? this.#texts.join(paragraph) : null;
  }
}

const paragraph = '\n\n';
