import type { Clock } from '../../shared/clock.js';
import type { RelayError } from '../../shared/errors.js';
import type { JobDone } from '../../shared/job.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { jsonLines } from '../../worker/http/event-stream.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  type Ending,
  type StreamFormat,
  ThoughtPieces,
  thoughtText,
  type WrittenEvent,
} from '../../worker/jobs/answer-format.js';
import { inputObject } from '../doors/tool-offer.js';
import { ollamaErrorBody } from './errors.js';

/** Output of a model in addition to its text. */
interface Beside {
  readonly calls?: readonly object[] | undefined;
  readonly thinking?: string | undefined;
}

/** Puts text and other output into the fields of one endpoint. */
type Content = (text: string, beside?: Beside) => object;

const chatContent: Content = (content, { calls, thinking } = {}) => ({
  message: { role: 'assistant', content, ...(thinking && { thinking }), ...(calls && { tool_calls: calls }) },
});
const generateContent: Content = (response, { thinking } = {}) => ({ response, ...(thinking && { thinking }) });

/** Returns the format of an endpoint. A refusal by the model is an answer with the `done_reason` `refusal`. */
function formatOf(content: Content, clock: Clock): AnswerFormat {
  return {
    isForSdks: false,
    showsRefusals: true,
    manner: jsonLines,
    body: (answer) => ({
      ...headOf(answer.model, clock),
      ...content(answer.text, { calls: callsOf(answer), thinking: thoughtText(answer.parts) }),
      ...endOf(answer),
    }),
    stream: ({ model }) => new LineStream(model, content, clock),
  };
}

export function ollamaChatFormat(clock: Clock): AnswerFormat {
  return formatOf(chatContent, clock);
}

export function ollamaGenerateFormat(clock: Clock): AnswerFormat {
  return formatOf(generateContent, clock);
}

/** Returns the answer to a request that only loads or unloads a model. */
export function loadedBody(endpoint: 'chat' | 'generate', model: string, isUnload: boolean, clock: Clock): object {
  const content = endpoint === 'chat' ? chatContent : generateContent;
  const reason = isUnload ? 'unload' : 'load';
  return { ...headOf(model, clock), ...content(''), done: true, done_reason: reason };
}

function headOf(model: string, clock: Clock): object {
  return { model, created_at: new Date(clock.now()).toISOString() };
}

function callsOf({ calls }: CompletedAnswer): object[] | undefined {
  if (calls.length === 0) return undefined;
  return calls.map(({ id, name, input }, index) => ({
    id,
    function: { index, name, arguments: inputObject(input) },
  }));
}

const doneReasons: Readonly<Record<Ending, string>> = {
  ...{ whole: 'stop', 'stop-sequence': 'stop', 'tool-call': 'stop' },
  ...{ length: 'length', refusal: 'refusal' },
};

function endOf({ ending, usage, end }: CompletedAnswer): object {
  return {
    done: true,
    done_reason: doneReasons[ending],
    ...durationsOf(end),
    prompt_eval_count: usage.input,
    eval_count: usage.output,
  };
}

/**
 * Returns durations in nanoseconds. The wait for a slot counts as loading. The time for reading the prompt is unknown,
 * because model CLIs do not report it. No duration is 0, because clients divide by them.
 */
function durationsOf({ queueMs, executionMs }: Pick<JobDone, 'queueMs' | 'executionMs'>): object {
  const [load, run] = [queueMs, executionMs].map((ms) => Math.max(1, Math.round(ms * 1e6))) as [number, number];
  return { total_duration: load + run, load_duration: load, prompt_eval_duration: 1, eval_duration: run };
}

/** Writes a line of JSON for each delta. Calls are sent at the end, because their arguments are JSON objects. */
class LineStream implements StreamFormat {
  readonly #model: string;
  readonly #content: Content;
  readonly #clock: Clock;
  readonly #thoughts = new ThoughtPieces();

  constructor(model: string, content: Content, clock: Clock) {
    this.#model = model;
    this.#content = content;
    this.#clock = clock;
  }

  /** Returns a space, which JSON parsers skip before the next line. Some clients would parse an empty line as JSON. */
  ping(): string {
    return ' ';
  }

  formatBeginning(): string {
    return '';
  }

  formatPosition(): string {
    return '';
  }

  formatStart(): string {
    return '';
  }

  formatEvent(event: WrittenEvent): string {
    if (event.type === 'text-delta') return this.#piece(this.#content(event.text));
    if (event.type === 'thought-delta')
      return this.#piece(this.#content('', { thinking: this.#thoughts.addText(event.text) }));
    if (event.type === 'thought-end') this.#thoughts.endThought();
    return '';
  }

  formatEnd(answer: CompletedAnswer): string {
    const calls = callsOf(answer);
    const called = calls === undefined ? '' : this.#piece(this.#content('', { calls }));
    return called + line({ ...headOf(answer.model, this.#clock), ...this.#content(''), ...endOf(answer) });
  }

  formatFailure(error: RelayError): string {
    return line(ollamaErrorBody(error));
  }

  #piece(content: object): string {
    return line({ ...headOf(this.#model, this.#clock), ...content, done: false });
  }
}

function line(content: object): string {
  return `${stringifyExactly(content)}\n`;
}
