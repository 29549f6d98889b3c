import { randomUUID } from 'node:crypto';
import { orAborted } from '../../shared/async.js';
import { cliError } from '../../shared/errors.js';
import type { RefusedAnswer, Thought, TokenEstimate } from '../../shared/job.js';
import { needsWrapper, unwrappedText, wrappedSchema } from '../../shared/text/json-schema.js';
import { messageTexts } from '../../shared/text/turns.js';
import {
  addedUsage,
  type CallDelta,
  type CallStart,
  type Capabilities,
  type Message,
  type OptionalWish,
  type ThoughtDelta,
  type ThoughtEnd,
  type Tool,
  type ToolCall,
  type ToolOffer,
  type Turn,
  type TurnEnd,
  type Waiting,
} from '../cli/contract/adapter.js';
import { dropsTools, isEmulated, unsupported } from '../cli/models.js';
import type { TextSink } from '../cli/process/open-turn.js';
import type { CountTokens, TurnRecord } from '../conversations/conversation-turn.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import type { SchemaFinding } from '../threads/schema-thread.js';
import type { Charges } from './charges.js';
import { emulated, readAnswer, schemaOfCall, withoutTools } from './emulated-tools.js';
import type { Job } from './job.js';
import type { JobCli, JobProcesses } from './job-processes.js';
import { ProgramTools } from './program-tools.js';
import { type SamplingRules, unsentWishes } from './sampling-rules.js';
import { StopCutter } from './stop-cutter.js';
import { Thoughts } from './thoughts.js';

type Uncounted = Omit<Answered, 'estimate' | 'thoughts'>;

/** End of a job's answer. `text` is the whole answer if it differs from the streamed text; otherwise null. */
export interface Answered extends TurnEnd {
  readonly stopSequence: string | null;
  /** Whether the process waits for the results of its calls. */
  readonly isWaiting: boolean;
  /** Whether the service cut or repaired the answer: the process then has a different history than the client. */
  readonly isCut: boolean;
  /** Requested options that the model has refused. */
  readonly ignores?: readonly OptionalWish[];
  readonly estimate: TokenEstimate | null;
  /** Thoughts in the form that the caller asked for. */
  readonly thoughts?: readonly Thought[];
}

/** JSON value that fits its schema; empty if the model called tools, or if the answer was cut. */
interface Valued {
  readonly end: CheckedEnd;
  readonly value: string;
}

/** `isRepaired`: whether the process has had a turn that the client does not know. */
type CheckedEnd = TurnEnd & { readonly isRepaired: boolean };

/** Receiver of the answer of one turn. */
interface AnswerTarget extends Pick<TextSink, 'write' | 'call'> {
  hasEnough(): boolean;
  /** Sends buffered text, because a thought follows. */
  beforeThought?(): void;
  /** Sends buffered text, because the answer ends. */
  flush?(): void;
}

export interface AnsweringParts {
  readonly processes: JobProcesses;
  readonly schemas: Pick<SchemaChecker, 'read'>;
  /** Records the sent text for the conversation; null if the job has no conversation. */
  readonly record: Pick<TurnRecord, 'add'> | null;
  readonly countTokens: CountTokens;
  /** Whether the program reported no token counts for the previous job. */
  readonly isUsageUnknown: boolean;
  readonly sampling: Pick<SamplingRules, 'fit' | 'repeatable'>;
  readonly charges: Charges;
  onFirstText(): void;
}

/**
 * Owns one job's answer while it is produced: runs the model's turns, cuts the answer before a stop sequence, and
 * checks it against a schema. With a schema, the value is sent only after all of it has been checked.
 */
export class Answering {
  readonly #job: Job;
  readonly #parts: AnsweringParts;
  readonly #said: string[] = [];
  #hasBegun = false;
  /** End of the turn in which the model refused. */
  #refused: TurnEnd | null = null;
  readonly #thoughts: Thoughts;
  /** Sent text in UTF-16 units, and number of calls whose start was sent. */
  readonly #passed = { at: 0, calls: 0 };
  readonly #passedCalls: string[] = [];

  constructor(job: Job, parts: AnsweringParts) {
    this.#job = job;
    this.#parts = parts;
    this.#thoughts = new Thoughts(job.request.thinking, (event) => job.events.thought(event));
  }

  get #isRecorded(): boolean {
    return this.#job.chain !== null || this.#job.request.isStreamed;
  }

  /** All text sent so far; empty unless the job has a chain or is streamed. */
  get said(): string {
    return this.#said.join('');
  }

  /** The part of a refused answer that was sent; null if the model did not refuse. */
  get refusedAnswer(): RefusedAnswer | null {
    if (this.#refused === null) return null;
    const { model, usage, refusal, calls = [] } = this.#refused;
    this.#thoughts.close(this.#passed);
    const thoughts = this.#thoughts.in(this.#passed.at, false);
    const passed = calls.filter(({ id }) => this.#passedCalls.includes(id));
    return { model: this.#publicName(model), usage, refusal, calls: passed, thoughts };
  }

  async run(): Promise<Answered> {
    const { request, chain } = this.#job;
    const isLikely = this.#parts.isUsageUnknown || request.stop.length > 0;
    const heard = chain !== null && isLikely ? this.#countHeard() : null; // counted in parallel, while the model thinks
    const said = await this.#say();
    this.#thoughts.close(this.#passed);
    const thoughts = this.#thoughts.in(this.#passed.at, said.text !== null);
    return { ...said, model: this.#publicName(said.model), thoughts, estimate: await this.#estimated(said, heard) };
  }

  #publicName(model: string | null): string | null {
    return model === null ? null : this.#job.route.cli.publicName(model);
  }

  /** Runs the turn. If the API refuses a sampling field, no model has run: repeats the turn without that field. */
  async #say(): Promise<Uncounted> {
    const { sampling, processes } = this.#parts;
    const { route, request } = this.#job;
    let cli = await processes.take();
    checkExtras(cli.extras, this.#job);
    const first = sampling.fit(this.#asked(), route, cli.extras);
    for (let asked = first; ; cli = await processes.takeAnother()) {
      try {
        const answer = await this.#answer(cli, asked);
        return asked === first ? answer : { ...answer, ignores: unsentWishes(request, asked) };
      } catch (error) {
        const next = this.#hasBegun ? null : sampling.repeatable(error, asked, route);
        if (next === null) throw error;
        asked = next;
      }
    }
  }

  async #answer(cli: JobCli, asked: Turn): Promise<Uncounted> {
    const { offer } = this.#job.request;
    if (offer === undefined) return this.#natively(cli, asked);
    if (isEmulated(cli.extras, offer)) return this.#emulated(cli, asked, offer);
    return this.#natively(cli, dropsTools(cli.extras, offer) ? withoutTools(asked) : asked);
  }

  #asked(): Turn {
    const { request, launch, turn } = this.#job;
    const { text, images, results, offer, sampling, stop, thinking } = request;
    return {
      ...{ ...launch, text, images, history: turn?.history ?? request.history },
      ...(results !== undefined && { results }),
      ...(offer !== undefined && { offer }),
      ...(sampling !== undefined && { sampling }),
      ...(thinking !== undefined && { thinking }),
      ...(stop.length > 0 && { stop }),
    };
  }

  #natively(cli: JobCli, asked: Turn): Promise<Uncounted> {
    const { schema } = this.#job.launch;
    return schema === null ? this.#freely(cli, asked) : this.#structured(cli, asked, schema);
  }

  async #freely(cli: JobCli, asked: Turn): Promise<Uncounted> {
    const cutter = new StopCutter(this.#job.request.stop);
    const write = (text: string) => this.#pass(cutter.add(text));
    const flush = () => this.#pass(cutter.rest());
    const call = (event: CallStart | CallDelta) => {
      this.#pass(cutter.rest());
      this.#passCall(event);
    };
    const hasEnough = () => cutter.found !== null;
    const end = await this.#checkedTurn(cli, asked, { write, call, hasEnough, flush, beforeThought: flush });
    if (end.text === null) flush();
    const ended = {
      ...end,
      stopSequence: cutter.found ?? end.stopSequence ?? null,
      isCut: cutter.found !== null || end.isRepaired,
    };
    const isWaiting = (end.calls ?? []).length > 0;
    if (end.text === null) return { ...ended, isWaiting };
    const whole = new StopCutter(this.#job.request.stop);
    const text = this.#correct(whole.add(end.text) + whole.rest());
    this.#passCalls(end.calls ?? []);
    const stopSequence = whole.found ?? end.stopSequence ?? null;
    return { ...ended, text, stopSequence, isCut: whole.found !== null, isWaiting };
  }

  /**
   * Sends the missing rest of the final text and returns null; if it contradicts the sent text, returns it for a plain
   * answer. Throws for a stream, because sent text cannot be withdrawn.
   */
  #correct(text: string): string | null {
    const { said } = this;
    if (this.#isRecorded && text.startsWith(said)) {
      this.#pass(text.slice(said.length));
      return null;
    }
    // some programs trim the whole text
    if (this.#isRecorded && withoutBlanks(text) === withoutBlanks(said)) return null;
    if (this.#job.request.isStreamed) throw broken();
    return text;
  }

  /** Sends the calls that the program did not stream. */
  #passCalls(calls: readonly ToolCall[]): void {
    const isKept = this.#passedCalls.every((id, at) => calls[at]?.id === id);
    if (!isKept && this.#job.request.isStreamed) throw broken();
    for (const { id, name, input } of calls.slice(this.#passedCalls.length)) {
      this.#passCall({ type: 'call-start', id, name });
      this.#passCall({ type: 'call-delta', text: input });
    }
  }

  /** Emulates tools by a schema built from them; an answer has at most one call. */
  async #emulated(cli: JobCli, asked: Turn, offer: ToolOffer): Promise<Uncounted> {
    const { turn, schema } = emulated(asked, offer, this.#job.launch.schema);
    const { end, value } = await this.#valued(cli, turn, schema, (text) => this.#emulatedFault(offer, text));
    const plain = { ...plainEnd(end), stopSequence: null, isCut: false, isWaiting: false };
    if (end.isCutShort) return plain;
    const answer = readAnswer(value, offer, this.#job.launch.schema !== null);
    if (answer.kind === 'fault') throw mismatch(answer.fault);
    if (answer.kind === 'text') {
      this.#pass(answer.text);
      return plain;
    }
    const call = { id: `call_${randomUUID()}`, name: answer.name, input: answer.input };
    this.#passCall({ type: 'call-start', id: call.id, name: call.name });
    this.#passCall({ type: 'call-delta', text: call.input });
    return { ...plain, calls: [call] };
  }

  /** Returns why an answer is no valid call: its arguments must also fit the schema of the called tool. */
  async #emulatedFault(offer: ToolOffer, value: string): Promise<string | null> {
    const answer = readAnswer(value, offer, this.#job.launch.schema !== null);
    if (answer.kind === 'fault') return answer.fault;
    if (answer.kind === 'text') return null;
    const finding = await this.#read(schemaOfCall(offer, answer.name), answer.input);
    return finding.kind === 'fits' ? null : finding.fault;
  }

  #passCall(event: CallStart | CallDelta): void {
    this.#thoughts.close(this.#passed);
    if (event.type === 'call-start') this.#passed.calls = this.#passedCalls.push(event.id);
    this.#job.events.call(event);
  }

  async #structured(cli: JobCli, asked: Turn, schema: string): Promise<Uncounted> {
    const { end, value } = await this.#valued(cli, asked, schema);
    const isWaiting = (end.calls ?? []).length > 0;
    if (!isWaiting) this.#pass(value);
    return { ...plainEnd(end), stopSequence: null, isCut: end.isRepaired, isWaiting };
  }

  /**
   * Gets a value by the program's native schema support; otherwise by the prompt, with one more turn to repair an
   * answer that does not fit or in which `faultOf` finds a fault. The value is empty if the model called tools.
   */
  async #valued(
    cli: JobCli,
    asked: Turn,
    schema: string,
    faultOf: (value: string) => Promise<string | null> = async () => null,
  ): Promise<Valued> {
    const { schema: programSchema, isWrapped } = programSchemaOf(schema);
    const isToldInPrompt = cli.extras.schema?.(programSchema) === undefined;
    const turn = isToldInPrompt ? askingFor(asked, schema) : { ...asked, schema: programSchema };
    const first = await this.#whole(cli, turn);
    if (first.calls !== undefined) return { end: first, value: '' };
    if (first.isCutShort) return { end: first, value: this.#cutValue() };
    const text = isWrapped && !isToldInPrompt ? unwrappedText(first.text) : first.text;
    const found = await this.#checked(schema, text, faultOf);
    if (found.value !== null) return { end: first, value: found.value };
    if (!isToldInPrompt) throw mismatch(found.fault);
    const repair = repairing(turn, first.text, found.fault);
    const second = await this.#whole(await this.#parts.processes.takeAnother(), repair);
    const repaired = await this.#checked(schema, second.text, faultOf);
    if (repaired.value === null) throw mismatch(repaired.fault);
    return { end: { ...second, usage: addedUsage(first.usage, second.usage) }, value: repaired.value };
  }

  /** Returns an empty value for the compatibility APIs, which report the cut; throws for other jobs. */
  #cutValue(): string {
    if (this.#job.chain !== null) return '';
    throw cliError('output_too_large', 'the model stopped before the end of its answer, at a limit of output');
  }

  async #checked(schema: string, text: string, faultOf: (value: string) => Promise<string | null>) {
    const finding = await this.#read(schema, text);
    const fault = finding.kind === 'fits' ? await faultOf(finding.value) : finding.fault;
    return fault === null && finding.kind === 'fits'
      ? ({ value: finding.value } as const)
      : ({ value: null, fault: fault ?? '' } as const);
  }

  /** A cancelled job stops waiting for the check, so that it releases its slot. */
  #read(schema: string, text: string): Promise<SchemaFinding> {
    const { request, signal } = this.#job;
    return orAborted(this.#parts.schemas.read(schema, text, request.client), signal);
  }

  /** Runs a turn and buffers its text. Text before a tool call is sent with the call. */
  async #whole(cli: JobCli, turn: Turn): Promise<CheckedEnd & { readonly text: string }> {
    const pieces: string[] = [];
    const write = (text: string) => void pieces.push(text);
    const call = (event: CallStart | CallDelta) => {
      this.#pass(pieces.splice(0).join(''));
      this.#passCall(event);
    };
    const flush = () => this.#pass(pieces.splice(0).join(''));
    const end = await this.#checkedTurn(cli, turn, { write, call, hasEnough: () => false, flush });
    return { ...end, text: end.text ?? pieces.join('') };
  }

  /** Sends calls of strict tools only after all of a message fit their schemas; the model may repair them once. */
  async #checkedTurn(cli: JobCli, asked: Turn, to: AnswerTarget): Promise<CheckedEnd> {
    const isStrict = asked.offer?.tools.some((tool) => tool.isStrict) === true;
    if (!isStrict) return { ...(await this.#turn(cli, asked, to)), isRepaired: false };
    const first = await this.#strictTurn(cli, asked, to);
    if (first.fault === null) return { ...first.end, isRepaired: false };
    const text = `No tool was called: ${first.fault}. Call again, with arguments that fit the schema.`;
    const results = (first.end.calls ?? []).map(({ id }) => ({ id, text, isError: true }));
    const second = await this.#strictTurn(cli, { ...asked, text: '', images: [], history: [], results }, to);
    if (second.fault !== null) throw mismatch(second.fault);
    return { ...second.end, usage: addedUsage(first.end.usage, second.end.usage), isRepaired: true };
  }

  async #strictTurn(cli: JobCli, turn: Turn, to: AnswerTarget) {
    const held: (CallStart | CallDelta)[] = [];
    const end = await this.#turn(cli, turn, { ...to, call: (event) => void held.push(event) });
    const fault = await this.#strictFault(turn.offer?.tools ?? [], end.calls ?? []);
    if (fault === null) for (const event of held) to.call(event);
    return { end, fault };
  }

  async #strictFault(tools: readonly Tool[], calls: readonly ToolCall[]): Promise<string | null> {
    for (const { name, input } of calls) {
      const tool = tools.find((each) => each.isStrict && each.name === name);
      const finding = tool && (await this.#read(tool.schema, input));
      if (finding !== undefined && finding.kind !== 'fits') return `${name}: ${finding.fault}`;
    }
    return null;
  }

  async #turn(cli: JobCli, turn: Turn, to: AnswerTarget): Promise<TurnEnd> {
    const end = await this.#anyTurn(cli, turn, to);
    if (end.refusal === undefined) return end;
    to.flush?.();
    this.#refused = end;
    const { category } = end.refusal;
    throw cliError('refused', `the model declines to answer${category === null ? '' : `: ${category}`}`);
  }

  #anyTurn(cli: JobCli, turn: Turn, to: AnswerTarget): Promise<TurnEnd> {
    const { events, signal } = this.#job;
    const begin = () => {
      if (!this.#hasBegun) this.#parts.onFirstText();
      this.#hasBegun = true;
    };
    const tools = new ProgramTools(turn.offer, to.call);
    const thought = (event: ThoughtDelta | ThoughtEnd) => {
      begin();
      tools.endCall();
      to.beforeThought?.();
      this.#thoughts.take(event, this.#passed);
    };
    const sink: TextSink = {
      write: (text) => {
        begin();
        tools.endCall();
        to.write(text);
      },
      call: (event) => {
        begin();
        tools.take(event);
      },
      ...(this.#thoughts.areWanted && { thought }),
      model: (name) => events.model(this.#job.route.cli.publicName(name) ?? name),
      get hasEnough() {
        return to.hasEnough();
      },
      get isFull() {
        return events.isFull;
      },
      room: () => events.room(),
      used: (use) => {
        const { process } = cli;
        this.#job.addCharge(this.#parts.charges.chargeTurn({ process, cli: this.#job.route.cli, turn, use }));
      },
      waits: (waiting) => this.#mayWait(waiting),
    };
    const ended = cli
      .turn(tools.toProgram(turn), sink, signal)
      .then(({ calls, ...end }) => {
        tools.endCall();
        return calls === undefined ? end : { ...end, calls: tools.toClient(calls) };
      })
      .finally(() => this.#job.addUsage(cli.usage()));
    const span = this.#job.spans?.turn(turn, cli);
    if (span !== undefined) ended.then(span.ended, span.failed);
    return ended;
  }

  #mayWait(waiting: Waiting): boolean {
    this.#job.route.cli.health.apiWaits(this.#job, waiting);
    return waiting.ms < this.#job.leftMs;
  }

  /** Clients that store the conversation themselves need an estimate to see how full the context window is. */
  async #estimated({ text, usage, calls }: Uncounted, heard: Promise<number> | null): Promise<TokenEstimate | null> {
    if (this.#job.chain === null || usage.outputTokens !== null) return null;
    const outputTokens = this.#countTokens(messageTexts({ text: text ?? this.said, calls }));
    return { inputTokens: await (heard ?? this.#countHeard()), outputTokens: await outputTokens };
  }

  #countHeard(): Promise<number> {
    const { system, history, offer, ...asked } = this.#job.request;
    const tools = offer?.tools.map(({ description, schema }) => description + schema) ?? [];
    return this.#countTokens([system ?? '', ...tools, ...[...history, asked].flatMap(messageTexts)]);
  }

  #countTokens(texts: readonly string[]): Promise<number> {
    return this.#parts.countTokens(texts, this.#job.request.client);
  }

  #pass(text: string): void {
    if (text === '') return;
    this.#thoughts.close(this.#passed);
    this.#passed.at += text.length;
    if (this.#isRecorded) this.#said.push(text);
    this.#parts.record?.add(text);
    this.#job.events.write(text);
  }
}

/** Returns the schema in the form for programs, and whether it had to be wrapped in an object. */
function programSchemaOf(schema: string): { readonly schema: string; readonly isWrapped: boolean } {
  const parsed = JSON.parse(schema);
  if (!needsWrapper(parsed)) return { schema, isWrapped: false };
  return { schema: JSON.stringify(wrappedSchema(parsed)), isWrapped: true };
}

/** Returns the end of a turn whose text was already sent. */
function plainEnd({ model, usage, calls, isCutShort }: TurnEnd): TurnEnd {
  const more = { ...(calls !== undefined && { calls }), ...(isCutShort && { isCutShort }) };
  return { type: 'turn-end', text: null, model, usage, ...more };
}

/** Repeats the check of the admission, which was skipped if the program had not been inspected yet. */
function checkExtras(extras: Capabilities, { request }: Job): void {
  const what = unsupported(extras, request);
  if (what !== null) throw cliError('other', `the model CLI takes no ${what}`);
}

function withoutBlanks(text: string): string {
  return text.replace(/\s+/g, '');
}

function broken(): Error {
  return cliError('answer_broken', "the connection to the model's API was lost, and what was sent is not the answer");
}

function mismatch(fault: string): Error {
  return cliError('schema_mismatch', `the answer of the model does not fit the schema: ${fault}`);
}

/** Returns the turn for a program without schema support: the schema is part of its text. */
export function askingFor<T extends Turn>(turn: T, schema: string): T {
  const request = `Answer with one JSON value alone, without any other text, that fits this JSON Schema:\n${schema}`;
  return { ...turn, text: `${turn.text}\n\n${request}`, schema: null };
}

/** Returns the turn that asks the model to repair an answer that did not fit the schema. */
export function repairing<T extends Turn>(asked: T, answer: string, fault: string): T {
  const said: readonly Message[] = [
    { role: 'user', text: asked.text, images: asked.images },
    { role: 'assistant', text: answer },
  ];
  const text = `That does not fit the schema: ${fault}. Answer again, with the whole JSON value alone.`;
  return { ...asked, text, images: [], history: [...asked.history, ...said] };
}
