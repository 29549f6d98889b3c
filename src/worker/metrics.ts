import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { knownResponses } from '../shared/api/responses.js';
import { errorCodes } from '../shared/errors.js';
import { metricPrefix, type Route, routes } from '../shared/metric-names.js';
import { addProcessMetrics } from '../shared/process-metrics.js';

/** HTTP is answered in milliseconds, but a job may take its whole time-out. */
const durationBuckets = [0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120, 600];

/** Owns what this worker counts: its HTTP exchanges. The primary joins the workers' figures. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: `${metricPrefix}http_requests_total`,
    help: 'Requests answered, by method, route template and status code.',
    labelNames: ['method', 'route', 'code'] as const,
    registers: [this.#registry],
  });
  readonly #durations = new Histogram({
    name: `${metricPrefix}http_request_duration_seconds`,
    help: 'Time from the request head to the end of the response.',
    labelNames: ['method', 'route', 'code'] as const,
    buckets: durationBuckets,
    registers: [this.#registry],
  });
  readonly #inFlight = new Gauge({
    name: `${metricPrefix}http_requests_in_flight`,
    help: 'Requests that are being answered.',
    registers: [this.#registry],
  });
  readonly #aborted = new Counter({
    name: `${metricPrefix}http_aborted_requests_total`,
    help: 'Requests whose client went away before the answer was out.',
    labelNames: ['route'] as const,
    registers: [this.#registry],
  });
  readonly #errors = new Counter({
    name: `${metricPrefix}errors_total`,
    help: 'Error bodies sent, by route template and error code.',
    labelNames: ['route', 'error'] as const,
    registers: [this.#registry],
  });
  readonly #logErrors = new Counter({
    name: `${metricPrefix}log_write_errors_total`,
    help: 'Log records that could not be written.',
    registers: [this.#registry],
  });

  constructor() {
    for (const { method, route, code } of knownResponses) {
      this.#requests.inc({ method, route, code }, 0);
      this.#durations.zero({ method, route, code: String(code) });
    }
    for (const route of routes) {
      this.#aborted.inc({ route }, 0);
      for (const error of errorCodes) this.#errors.inc({ route, error }, 0);
    }
    addProcessMetrics(this.#registry, 'worker');
  }

  opened(): void {
    this.#inFlight.inc();
  }

  completed(method: string, route: Route, code: number, seconds: number): void {
    this.#inFlight.dec();
    const labels = { method: knownMethods.has(method) ? method : 'other', route, code: String(code) };
    this.#requests.inc(labels);
    this.#durations.observe(labels, seconds);
  }

  aborted(route: Route): void {
    this.#inFlight.dec();
    this.#aborted.inc({ route });
  }

  failed(route: Route, error: string): void {
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

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
