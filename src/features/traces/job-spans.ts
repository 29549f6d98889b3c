import type { Turn, TurnEnd } from '../../primary/cli/contract/adapter.js';
import type { Route } from '../../primary/cli/route.js';
import type { JobCli } from '../../primary/jobs/job-cli.js';
import type { JobTrace, TurnTrace } from '../../primary/jobs/job-trace.js';
import type { Clock } from '../../shared/clock.js';
import { type RelayError, toRelayError } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { TraceContext } from '../../shared/trace/context.js';
import type { Attributes, Span } from './span.js';

/** Receiver of spans. */
export interface SpanSink {
  addSpan(span: Span | string): void;
}

/** Job as its spans describe it: without its texts, and without names that the client chose. */
export interface TracedJob {
  readonly trace: TraceContext;
  readonly request: JobRequest;
  /** Route of the next turn. */
  readonly route: Route;
}

type SpanParts = Pick<Span, 'name' | 'kind' | 'startMs' | 'attributes' | 'error'> & { readonly endMs?: number };

const cliStart = { name: 'cli start', kind: 'internal', attributes: [] } as const;

/** Writes the spans of one job, as children of the span of its request: the wait, the turns, and process starts. */
export class JobSpans implements JobTrace {
  #job: TracedJob;
  readonly #sink: SpanSink;
  readonly #clock: Clock;
  /** Process of the last turn. A job may have several turns on one process. */
  #lastCli: JobCli | null = null;

  constructor(job: TracedJob, sink: SpanSink, clock: Clock) {
    this.#job = job;
    this.#sink = sink;
    this.#clock = clock;
  }

  /** Sets the route of the following turns. */
  reroute(route: Route): void {
    this.#job = { ...this.#job, route };
  }

  /** Records the wait of a job: `end` is null if the job got its slot. */
  waited(ms: number, end: JobEnd | null): void {
    const error = end === null || end.outcome === 'ok' ? undefined : end.failure.code;
    this.#write({ name: 'wait', kind: 'internal', startMs: this.#clock.now() - ms, attributes: [], error });
  }

  /**
   * Records the search or the start of a process. A client with tool results may find the process that waits for them.
   */
  acquiring(acquired: Promise<JobCli>): void {
    const sinceMs = this.#clock.now();
    acquired.then(
      ({ heldMs }) => this.#toolRound(heldMs),
      (error) => this.#write({ ...cliStart, startMs: sinceMs, error: toRelayError(error).code }),
    );
  }

  /** Records the time between calls and their results. The time is known only if the process waited for the results. */
  #toolRound(heldMs: number | null): void {
    const { results } = this.#job.request;
    if (results === undefined) return;
    const attributes = {
      'prompt_relay.tool_round.outcome': heldMs === null ? 'replay' : 'live',
      'prompt_relay.tool_round.results': results.length,
    };
    const startMs = this.#clock.now() - (heldMs ?? 0);
    this.#write({ name: 'tool round', kind: 'internal', startMs, attributes: [attributes] });
  }

  /** Records the start of a new process, until its first output byte. */
  #started({ origin, process: { startedMs, startupMs } }: JobCli, error: string | undefined): void {
    if (origin !== 'new' || (startupMs === null && error === undefined)) return;
    const nowMs = this.#clock.now();
    const startMs = nowMs - (this.#clock.monotonicMs() - startedMs);
    const endMs = startupMs === null ? nowMs : startMs + startupMs;
    this.#write({ ...cliStart, startMs, endMs, error: startupMs === null ? error : undefined });
  }

  /** Starts the span of a turn. The result must be called at the end of the turn. */
  turn(turn: Turn, cli: JobCli): TurnTrace {
    const startMs = this.#clock.now();
    return {
      ended: (end) => this.#turnEnded(startMs, turn, cli, end, undefined),
      failed: (error) => this.#turnEnded(startMs, turn, cli, null, toRelayError(error)),
    };
  }

  #turnEnded(startMs: number, turn: Turn, cli: JobCli, end: TurnEnd | null, failure: RelayError | undefined): void {
    if (this.#lastCli !== cli) this.#started(cli, failure?.code);
    this.#lastCli = cli;
    const model = this.#job.route.label ?? this.#job.request.model;
    this.#write({
      name: model === null ? 'chat' : `chat ${model}`,
      kind: 'client',
      startMs,
      attributes: [
        this.#requestAttributes(turn, model),
        this.#answerAttributes(end),
        { 'prompt_relay.process': cli.origin, 'prompt_relay.error.reason': failure?.reason },
      ],
      error: failure?.code,
    });
  }

  #requestAttributes({ schema, sampling }: Turn, model: string | null): Attributes {
    const { route, request } = this.#job;
    const { adapter } = route.cli;
    return {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': adapter.provider ?? adapter.name,
      'gen_ai.request.model': model,
      'gen_ai.request.stream': request.isStreamed || undefined,
      'gen_ai.request.max_tokens': sampling?.maxTokens,
      'gen_ai.request.temperature': sampling?.temperature,
      'gen_ai.request.top_p': sampling?.topP,
      'gen_ai.output.type': schema === null ? 'text' : 'json',
      'gen_ai.conversation.id': request.conversationId,
    };
  }

  #answerAttributes(end: TurnEnd | null): Attributes {
    if (end === null) return {};
    const { model, usage, calls = [], isCutShort = false } = end;
    const reason = calls.length > 0 ? 'tool_calls' : isCutShort ? 'length' : 'stop';
    return {
      'gen_ai.response.model': model === null ? null : this.#job.route.cli.publicName(model),
      'gen_ai.response.finish_reasons': [reason],
      'gen_ai.usage.input_tokens': usage.inputTokens,
      'gen_ai.usage.output_tokens': usage.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
      'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens,
    };
  }

  #write({ name, kind, startMs, endMs = this.#clock.now(), attributes, error }: SpanParts): void {
    const { traceId, spanId: parentId, state } = this.#job.trace;
    this.#sink.addSpan({ traceId, parentId, state, name, kind, startMs, endMs, attributes, error });
  }
}

/** Returns a function that creates the spans of jobs whose trace is sampled, and returns null for other jobs. */
export function spansOfJobs(
  sink: SpanSink,
  clock: Clock,
): (request: JobRequest, choice: { readonly route: Route }) => JobSpans | null {
  return (request, { route }) => {
    const { trace } = request;
    return trace?.isSampled === true ? new JobSpans({ trace, request, route }, sink, clock) : null;
  };
}
