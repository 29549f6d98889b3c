import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import type { PrimaryCore } from '../../primary/features/feature.js';
import { withLimit } from '../../shared/async.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import { AnswerTooLarge, connectionFault, httpClientFor, sendPost, textOfAnswer } from '../protocols/outgoing-post.js';
import type { SpanExport } from './settings.js';
import type { logEvents } from './shared.js';
import { type Attributes, attributesText, type Span, spanTexts } from './span.js';

/**
 * Schema version of the names of spans and attributes: the last one with names for both models and HTTP. Later versions
 * moved the names for models to a repository that has not published a version.
 */
const schemaUrl = 'https://opentelemetry.io/schemas/1.41.1';

/** Maximum number of waiting spans, not counting the batch being sent. Further spans are dropped. */
export const maxWaiting = 2048;
export const maxBatch = 512;
/** Delay before a batch that is not full is sent. */
const batchMs = 5000;
const postLimitMs = 10_000;
const maxTries = 5;
const firstPauseMs = 1000;
const maxPauseMs = 30_000;
/** Time limits for the last spans at the end of the service; shorter if the collector did not accept earlier ones. */
const lastMs = { usual: 3000, withFault: 500 } as const;

export interface ExporterParts {
  readonly post: PostSpans;
  readonly clock: Clock;
  readonly log: Pick<Logger<LogEvent | keyof typeof logEvents>, 'info' | 'warn'>;
  /** Returns a number from 0 to 1, so that several hosts do not retry at the same time. */
  readonly random: () => number;
}

/**
 * Owns unsent spans, and sends them in batches, one batch at a time. Spans beyond the limit, and spans that the
 * collector rejects, are dropped and counted. No job waits for the export.
 */
export class SpanExporter {
  readonly counts = { exported: 0, dropped: 0 };
  readonly #parts: ExporterParts;
  readonly #head: string;
  #waiting: (Span | string)[] = [];
  #stopTimer: StopTimer | null = null;
  #sending: Promise<void> | null = null;
  /** Present fault, logged once; null while the collector accepts spans. */
  #fault: string | null = null;
  #isClosing = false;
  #request: AbortController | null = null;
  #endPause: () => void = () => {};

  /** `resource`: attributes that all spans share. */
  constructor(resource: Attributes, version: string, parts: ExporterParts) {
    this.#parts = parts;
    const resourceText = `{"resource":{"attributes":${attributesText(resource)}},"schemaUrl":"${schemaUrl}"`;
    const scopeText = `{"scope":${JSON.stringify({ name: 'prompt-relay', version })},"schemaUrl":"${schemaUrl}"`;
    this.#head = `{"resourceSpans":[${resourceText},"scopeSpans":[${scopeText},"spans":[`;
  }

  /** Adds a span. A span from a worker is a JSON text. */
  addSpan(span: Span | string): void {
    if (this.#waiting.length >= maxWaiting) return this.#drop(1, 'the collector accepts spans too slowly');
    this.#waiting.push(span);
    if (this.#waiting.length >= maxBatch) this.#begin();
    else this.#stopTimer ??= this.#parts.clock.after(batchMs, () => this.#begin());
  }

  /** Ends the export at the end of the service. Resolves when the last spans have been sent or dropped. */
  async closeExporter(): Promise<void> {
    this.#isClosing = true;
    this.#endPause();
    this.#begin();
    const limitMs = this.#fault === null ? lastMs.usual : lastMs.withFault;
    const stop = this.#parts.clock.after(limitMs, () => {
      this.#drop(this.#waiting.splice(0).length, 'the service has ended before all spans were sent');
      this.#request?.abort(new Error('the service has ended'));
    });
    await this.#sending;
    stop();
  }

  #begin(): void {
    this.#stopTimer?.();
    this.#stopTimer = null;
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    do await this.#send(this.#waiting.splice(0, maxBatch));
    while (this.#waiting.length >= (this.#isClosing ? 1 : maxBatch));
    this.#sending = null;
    if (this.#waiting.length > 0) this.#stopTimer = this.#parts.clock.after(batchMs, () => this.#begin());
  }

  async #send(batch: readonly (Span | string)[]): Promise<void> {
    if (batch.length === 0) return;
    const body = `${this.#head}${spanTexts(batch).join(',')}]}]}]}`;
    for (let tries = 1; ; tries++) {
      const result = await this.#post(body);
      if (result.kind === 'taken') return this.#taken(batch.length, result);
      const isLast = result.kind === 'refused' || tries === maxTries || this.#isClosing;
      if (isLast) return this.#drop(batch.length, result.reason);
      this.#failed(result.reason);
      await this.#pause(result.pauseMs ?? firstPauseMs * 2 ** (tries - 1));
    }
  }

  async #post(body: string): Promise<PostResult> {
    const { clock, post } = this.#parts;
    const request = new AbortController();
    this.#request = request;
    const stop = clock.after(postLimitMs, () => request.abort(new Error(`no answer in ${postLimitMs} ms`)));
    const result = await post(body, request.signal);
    stop();
    return result;
  }

  async #pause(ms: number): Promise<void> {
    const { clock, random } = this.#parts;
    const ended = new Promise<void>((resolve) => {
      this.#endPause = resolve;
    });
    await withLimit(ended, Math.min(ms, maxPauseMs) * (1 + random() / 2), clock);
  }

  #taken(count: number, { rejected, reason }: Extract<PostResult, { kind: 'taken' }>): void {
    const dropped = Math.min(count, Math.max(0, rejected));
    this.counts.exported += count - dropped;
    if (dropped > 0) return this.#drop(dropped, reason);
    // with a full batch waiting, more spans are likely to be dropped
    if (this.#fault === null || this.#waiting.length >= maxBatch) return;
    this.#fault = null;
    this.#parts.log.info('trace_export_back', { dropped: this.counts.dropped });
  }

  #drop(count: number, reason: string): void {
    if (count === 0) return;
    this.counts.dropped += count;
    this.#failed(reason);
  }

  #failed(reason: string): void {
    if (this.#fault === null) this.#parts.log.warn('trace_export_failed', { error: reason });
    this.#fault = reason;
  }
}

/** Creates the exporter of this service. Attributes set by the operator take precedence. */
export function openSpanExporter(
  settings: SpanExport,
  { product: { version }, clock, log, random }: PrimaryCore['host'],
): SpanExporter {
  const known = {
    'service.name': 'prompt-relay',
    'service.version': version,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
    'telemetry.sdk.name': 'prompt-relay',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
  };
  return new SpanExporter({ ...known, ...settings.resource }, version, {
    post: postSpans(settings),
    clock,
    log,
    random,
  });
}

/** Response of a collector. `reason` is for the log. */
export type PostResult =
  | { readonly kind: 'taken'; readonly rejected: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** `pauseMs`: pause that the collector requests. */
  | { readonly kind: 'retry'; readonly reason: string; readonly pauseMs: number | null };

/** Sends a batch until the signal aborts. Never rejects. */
export type PostSpans = (body: string, signal: AbortSignal) => Promise<PostResult>;

/** Status codes after which the same batch may be sent again. */
const passing = [429, 502, 503, 504];
/** Maximum length of a response. */
const maxAnswerBytes = 64 * 1024;
const maxReasonLength = 200;

/**
 * Less than the five seconds after which many servers close idle connections, so that no closing connection is reused.
 */
const idleMs = 4000;

/** Returns a function that sends batches as OTLP over HTTP, in JSON. */
export function postSpans({ url, headers }: Pick<SpanExport, 'url' | 'headers'>): PostSpans {
  const { Agent } = httpClientFor(url);
  const agent = new Agent({ keepAlive: true, timeout: idleMs });
  return async (body, signal) => {
    try {
      const answer = await sendPost({ url, headers, body, signal, agent });
      const text = await wholeText(answer);
      return isTaken(answer) ? takenAs(text) : refusedAs(answer);
    } catch (error) {
      if (signal.aborted) return { kind: 'refused', reason: (signal.reason as Error).message };
      return { kind: 'retry', reason: connectionFault(error), pauseMs: null };
    }
  };
}

const isTaken = ({ statusCode = 0 }: IncomingMessage) => statusCode >= 200 && statusCode < 300;

/** Reads the response to its end, so that the connection can be reused. Resolves with nothing if it is too long. */
async function wholeText(answer: IncomingMessage): Promise<string> {
  const pieces: string[] = [];
  try {
    for await (const piece of textOfAnswer(answer, maxAnswerBytes)) pieces.push(piece);
  } catch (error) {
    if (error instanceof AnswerTooLarge) return '';
    throw error;
  }
  return pieces.join('');
}

/** Returns the result of a successful request. A collector may reject part of a batch. */
function takenAs(text: string): PostResult {
  const { rejectedSpans, errorMessage } = partialSuccess(text);
  const rejected = Number(rejectedSpans ?? 0);
  const reason = typeof errorMessage === 'string' ? errorMessage.slice(0, maxReasonLength) : '';
  return {
    kind: 'taken',
    rejected: Number.isFinite(rejected) ? rejected : 0,
    reason: `spans were rejected: ${reason}`,
  };
}

function partialSuccess(text: string): { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown } {
  try {
    return JSON.parse(text)?.partialSuccess ?? {};
  } catch {
    return {}; // a successful status counts, whatever the body
  }
}

function refusedAs({ statusCode = 0, headers }: IncomingMessage): PostResult {
  const reason = `the collector answered ${statusCode}`;
  if (!passing.includes(statusCode)) return { kind: 'refused', reason };
  const seconds = /^\d{1,6}$/.exec(headers['retry-after'] ?? '')?.[0];
  return { kind: 'retry', reason, pauseMs: seconds === undefined ? null : Number(seconds) * 1000 };
}
