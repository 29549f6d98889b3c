import { Registry } from 'prom-client';
import { httpStatusOf, type PublicCode, publicCodes } from '../../shared/errors.js';
import {
  addProcessMetrics,
  counter,
  type FamilyFigures,
  FigureReport,
  gauge,
  histogram,
} from '../../shared/metrics.js';
import { type KnownResponse, knownResponses, methods, type RouteLabel, routeLabels } from './known-responses.js';

/** Most answers take milliseconds, but a job may take its whole time-out. */
const durationBuckets = [0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120, 600];

const perResponse = ['method', 'route', 'code'] as const;
const help = {
  requests: 'Requests answered, by method, route template and status code.',
  durations:
    'Time from the request head to the end of the response, of responses that an endpoint gave, streams of the status excluded.',
  aborted: 'Requests whose client went away.',
};

/** Owns what this worker counts: its HTTP exchanges. The primary adds up the figures of all workers. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #requests = counter(this.#registry, 'http_requests_total', help.requests, ...perResponse);
  readonly #durations = durationsIn(this.#registry);
  readonly #inFlight = gauge(
    this.#registry,
    'http_requests_in_flight',
    'Requests that are being answered, viewers of the status included.',
  );
  readonly #aborted = counter(this.#registry, 'http_aborted_requests_total', help.aborted, 'route');
  readonly #errors = counter(this.#registry, 'errors_total', 'Error bodies sent.', 'route', 'error');
  readonly #logErrors = counter(this.#registry, 'log_write_errors_total', 'Log records that could not be written.');
  readonly #report = new FigureReport();
  #hasNews = true;
  #isFirstReport = true;

  constructor() {
    for (const { method, route, code } of knownResponses) {
      this.#requests.inc({ method, route, code: String(code) }, 0);
    }
    for (const route of routeLabels) {
      this.#aborted.inc({ route }, 0);
      for (const error of publicCodes) this.#errors.inc({ route, error }, 0);
    }
    addProcessMetrics(this.#registry, 'worker');
  }

  /** Whether an exchange was counted since `changes` was last called. */
  get hasNews(): boolean {
    return this.#hasNews;
  }

  opened(): void {
    this.#hasNews = true;
    this.#inFlight.inc();
  }

  completed(method: string, route: RouteLabel, code: number, seconds: number): void {
    this.#hasNews = true;
    this.#inFlight.dec();
    const labels = { method: methodLabel(method), route, code: String(code) };
    this.#requests.inc(labels);
    if (isTimed({ route, code })) this.#durations.observe(labels, seconds);
  }

  /** Counts a refusal of bytes that never became a request. */
  refused(method: string, code: number, error: PublicCode): void {
    this.#hasNews = true;
    this.#requests.inc({ method: methodLabel(method), route: 'other', code: String(code) });
    this.failed('other', error);
  }

  aborted(route: RouteLabel): void {
    this.#hasNews = true;
    this.#inFlight.dec();
    this.#aborted.inc({ route });
  }

  failed(route: RouteLabel, error: PublicCode): void {
    this.#errors.inc({ route, error });
  }

  logWriteFailed(): void {
    this.#logErrors.inc();
  }

  /** What was counted since the last call, for the primary to add to what it knows. */
  async changes(): Promise<FamilyFigures[]> {
    this.#hasNews = false;
    const isFirst = this.#isFirstReport;
    this.#isFirstReport = false;
    const changes = this.#report.changes(await this.#registry.getMetricsAsJSON());
    return isFirst ? [await durationsOfNothing(), ...changes] : changes;
  }
}

function durationsIn(registry: Registry) {
  return histogram(registry, 'http_request_duration_seconds', help.durations, durationBuckets, ...perResponse);
}

/**
 * Each series of durations that there can be, at 0: the primary shows them from the start. They are not made in the
 * registry of the worker, because prom-client takes 7 KB for each and never gives them back.
 */
async function durationsOfNothing(): Promise<FamilyFigures> {
  const registry = new Registry();
  durationsIn(registry).zero({ method: '', route: '', code: '' });
  const [family] = new FigureReport().changes(await registry.getMetricsAsJSON());
  if (family === undefined) throw new Error('prom-client reports no series for a histogram');
  const values = knownResponses.filter(isTimed).flatMap(({ method, route, code }) => {
    const labels = { method, route, code: String(code) };
    return family.values.map((figure) => ({ ...figure, labels: { ...figure.labels, ...labels } }));
  });
  return { ...family, values };
}

export function methodLabel(method: string): (typeof methods)[number] {
  return methods.find((known) => known === method) ?? 'other';
}

/**
 * Whether a response is timed: where an endpoint gave it. A histogram has fourteen series for each label set, and most
 * label sets are refusals of unknown paths and methods. How long somebody views a stream without end is no measure.
 */
export function isTimed({ route, code }: Pick<KnownResponse, 'route' | 'code'>): boolean {
  return route !== 'other' && code !== httpStatusOf.method_not_allowed && !isEndless({ route, code });
}

/** Whether a response has no end of its own, so that it ends when its client goes. */
export function isEndless({ route, code }: Pick<KnownResponse, 'route' | 'code'>): boolean {
  return route === '/status/stream' && code === 200;
}
