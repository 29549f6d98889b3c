import { yieldToEventLoop } from '../../shared/clock.js';
import { cliError, invalid } from '../../shared/errors.js';
import { type Attachment, isDocument, type RefusedAnswer, type TokenEstimate } from '../../shared/job.js';
import { documentTable } from '../../shared/tables/document-types.js';
import { attachmentsIn, messageTexts } from '../../shared/text/turns.js';
import type { Capabilities, Turn } from '../cli/contract/adapter.js';
import { unsupported } from '../cli/models.js';
import type { CountTokens, TurnRecord } from '../conversations/conversation-turn.js';
import { AnswerOutput } from './answer-output.js';
import { AnswerTurns, type TurnParts } from './answer-turns.js';
import type { Answered, StrategyEnd } from './answered.js';
import type { Charges } from './charges.js';
import type { Job } from './job.js';
import type { JobFeatures } from './job-features.js';
import { type SamplingRules, unsentWishes } from './sampling-rules.js';
import { answerWith } from './structured.js';

/** Knowledge from earlier answers that later answers use. */
interface AnswerMemory {
  readonly charges: Charges;
  readonly sampling: SamplingRules;
  /** Whether the program reported no token counts for the last answered job. */
  isUsageUnknown: boolean;
}

export interface AnsweringParts extends TurnParts {
  readonly features: Pick<JobFeatures, 'searcher' | 'prepareTurn' | 'answerJob' | 'translateTurn'>;
  /** Records the sent text for the conversation; null if the job has no conversation. */
  readonly record: Pick<TurnRecord, 'addText' | 'addMessage'> | null;
  readonly countTokens: CountTokens;
  readonly memory: AnswerMemory;
  /** Longest answer. Each turn of a process has this limit, too. */
  readonly maxOutputBytes: number;
}

/** Size above which a request is written for its program in another turn of the event loop than its admission. */
const longRequestBytes = 256 * 1024;

/** Owns one job's answer while it is produced: chooses a strategy and a process, and estimates missing token counts. */
export class Answering {
  readonly #job: Job;
  readonly #parts: AnsweringParts;
  readonly #output: AnswerOutput;
  readonly #turns: AnswerTurns;

  constructor(job: Job, parts: AnsweringParts) {
    this.#job = job;
    this.#parts = parts;
    this.#output = new AnswerOutput(job, parts.record);
    this.#turns = new AnswerTurns(job, this.#output, parts);
  }

  /** All text sent so far; empty unless the job has a chain or is streamed. */
  get sentText(): string {
    return this.#output.text;
  }

  /** The part of a refused answer that was sent; null if the model did not refuse. */
  get refusedAnswer(): RefusedAnswer | null {
    if (this.#turns.refused === null) return null;
    const { model, usage, refusal, calls = [] } = this.#turns.refused;
    const sent = { calls: this.#output.sentCalls(calls), thoughts: this.#output.thoughts(false) };
    return { model: this.#publicName(model), usage, refusal, ...sent };
  }

  async run(): Promise<Answered> {
    const { request, chain } = this.#job;
    const { memory } = this.#parts;
    const isLikely = memory.isUsageUnknown || request.stop.length > 0;
    const inputTokens = chain !== null && isLikely ? this.#countInput() : null; // counted while the model thinks
    const end = await this.#answerWithAcceptedFields();
    const [thoughts, blocks] = [this.#output.thoughts(end.text !== null), this.#output.blocks(end.text !== null)];
    const estimate = await this.#estimate(end, inputTokens);
    memory.isUsageUnknown = end.usage.outputTokens === null;
    return {
      ...end,
      ...this.#output.searches(end.text),
      additions: this.#output.additions(end.text !== null),
      model: this.#publicName(end.model),
      thoughts,
      blocks,
      estimate,
    };
  }

  #publicName(model: string | null): string | null {
    return model === null ? null : this.#job.route.cli.publicName(model);
  }

  /** If the API refuses a sampling field, no model has run: repeats the turn without that field. */
  async #answerWithAcceptedFields(): Promise<StrategyEnd & Pick<Answered, 'ignores'>> {
    const { features, memory } = this.#parts;
    const { sampling } = memory;
    const { route, request } = this.#job;
    await this.#turns.processes.acquireProcess();
    if (this.#job.ticket.bytes > longRequestBytes) await yieldToEventLoop();
    checkExtras(this.#turns.extras, this.#job, features);
    const prepared = await features.prepareTurn(this.#turn(), this.#job, this.#turns.extras);
    checkDocuments(prepared, this.#turns.extras);
    const first = sampling.fit(prepared, route, this.#turns.extras, request.client);
    for (let turn = first; ; await this.#turns.processes.acquireAnother()) {
      try {
        const end = await this.#answer(turn);
        const ignores = unsentWishes(request, turn); // the admission did not know a program that just starts, or another route
        return ignores.length === 0 ? end : { ...end, ignores };
      } catch (error) {
        const isBegun = this.#turns.hasOutput || this.#job.hasAdditions;
        const next = isBegun ? null : sampling.repeatable(error, turn, route, request.client);
        if (next === null) throw error;
        turn = next;
      }
    }
  }

  #answer(turn: Turn): Promise<StrategyEnd> {
    return this.#parts.features.answerJob(this.#turns, turn) ?? answerWith(this.#turns, turn, this.#turns.run);
  }

  #turn(): Turn {
    const { request, launch, turn } = this.#job;
    const { text, images, results, offer, search, sampling, cache, stop, thinking } = request;
    return {
      ...{ ...launch, text, images, history: turn?.history ?? request.history },
      ...(results !== undefined && { results }),
      ...(offer !== undefined && { offer }),
      ...(sampling !== undefined && { sampling }),
      ...(cache !== undefined && { cache }),
      ...(search !== undefined && launch.hasSearch && { search: { ...search, maxUses: this.#job.searchesLeft } }),
      ...(thinking !== undefined && thinking !== 'progress' && { thinking }),
      ...(stop.length > 0 && { stop }),
    };
  }

  /** Clients that store the conversation themselves need an estimate to see how full the context window is. */
  async #estimate(end: StrategyEnd, inputTokens: Promise<number> | null): Promise<TokenEstimate | null> {
    const { text, usage, calls } = end;
    if (this.#job.chain === null || usage.outputTokens !== null) return null;
    const outputTokens = this.#countTokens(messageTexts({ text: text ?? this.sentText, calls }));
    return { inputTokens: await (inputTokens ?? this.#countInput()), outputTokens: await outputTokens };
  }

  #countInput(): Promise<number> {
    const { system, history, offer, ...message } = this.#job.request;
    const tools = offer?.tools.map(({ description, schema }) => description + schema) ?? [];
    return this.#countTokens([system ?? '', ...tools, ...[...history, message].flatMap(messageTexts)]);
  }

  #countTokens(texts: readonly string[]): Promise<number> {
    return this.#parts.countTokens(texts, this.#job.request.client);
  }
}

/** Repeats the check of the admission, which was skipped if the program had not been inspected yet. */
function checkExtras(extras: Capabilities, { request }: Job, { searcher }: AnsweringParts['features']): void {
  const what = unsupported(extras, request, searcher?.canSearch(extras) === true);
  if (what !== null) throw cliError('other', `the model CLI takes no ${what}`);
}

/** Throws if no feature has read a document that the program does not take, which a stored conversation may have. */
function checkDocuments({ images, results, history }: Turn, { document }: Capabilities): void {
  const messages = [{ images, results }, ...history];
  const isUnread = (each: Attachment) =>
    isDocument(each) && (document === undefined || !documentTable[each.mediaType].isNative);
  const inResults = attachmentsIn(messages.map((message) => ({ results: message.results })));
  if (inResults.some(isDocument) || attachmentsIn(messages).some(isUnread))
    throw invalid('files', 'of this conversation cannot be used: this service takes no documents');
}
