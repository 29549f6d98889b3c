import { Registry } from 'prom-client';
import { type ErrorCode, errorCodes } from '../shared/errors.js';
import { counter, gauge, histogram } from '../shared/metrics.js';
import { addProcessMetrics } from '../shared/process-metrics.js';
import { isOfEndpoint, knownResponses, methodLabel, type RouteLabel, routeLabels } from './known-responses.js';

/** HTTP is answered in milliseconds, but a job may take its whole time-out. */
const durationBuckets = [0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120, 600];

/** Owns what this worker counts: its HTTP exchanges. The primary joins the workers' figures. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #requests = counter(
    this.#registry,
    'http_requests_total',
    'Requests answered, by method, route template and status code.',
    'method',
    'route',
    'code',
  );
  readonly #durations = histogram(
    this.#registry,
    'http_request_duration_seconds',
    'Time from the request head to the end of the response, of responses that an endpoint gave.',
    durationBuckets,
    'method',
    'route',
    'code',
  );
  readonly #inFlight = gauge(this.#registry, 'http_requests_in_flight', 'Requests that are being answered.');
  readonly #aborted = counter(
    this.#registry,
    'http_aborted_requests_total',
    'Requests whose client went away.',
    'route',
  );
  readonly #errors = counter(this.#registry, 'errors_total', 'Error bodies sent.', 'route', 'error');
  readonly #logErrors = counter(this.#registry, 'log_write_errors_total', 'Log records that could not be written.');

  constructor() {
    for (const { method, route, code } of knownResponses) {
      const labels = { method, route, code: String(code) };
      this.#requests.inc(labels, 0);
      if (isOfEndpoint({ route, code })) this.#durations.zero(labels);
    }
    for (const route of routeLabels) {
      this.#aborted.inc({ route }, 0);
      for (const error of errorCodes) this.#errors.inc({ route, error }, 0);
    }
    addProcessMetrics(this.#registry, 'worker');
  }

  opened(): void {
    this.#inFlight.inc();
  }

  completed(method: string, route: RouteLabel, code: number, seconds: number): void {
    this.#inFlight.dec();
    const labels = { method: methodLabel(method), route, code: String(code) };
    this.#requests.inc(labels);
    if (isOfEndpoint({ route, code })) this.#durations.observe(labels, seconds);
  }

  /** An answer to what never became a request. */
  refused(code: number, error: ErrorCode): void {
    this.#requests.inc({ method: methodLabel(''), route: 'other', code: String(code) });
    this.failed('other', error);
  }

  aborted(route: RouteLabel): void {
    this.#inFlight.dec();
    this.#aborted.inc({ route });
  }

  failed(route: RouteLabel, error: ErrorCode): void {
    this.#errors.inc({ route, error });
  }

  logWriteFailed(): void {
    this.#logErrors.inc();
  }

  /** Everything as JSON text, in prom-client's own form, which the primary can join. */
  async snapshot(): Promise<string> {
    return JSON.stringify(await this.#registry.getMetricsAsJSON());
  }
}
