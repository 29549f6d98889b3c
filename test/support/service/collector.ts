import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { until } from '../basics/until.js';

type Value = { readonly [kind: string]: unknown };

/** Span of OTLP's JSON, with attributes by name. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly flags: number;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly status?: { readonly code: number };
}

type Listed = Omit<ReceivedSpan, 'attributes'> & { readonly attributes: readonly { key: string; value: Value }[] };

interface Batch {
  readonly resourceSpans: readonly [
    {
      readonly resource: { readonly attributes: readonly { key: string; value: Value }[] };
      readonly schemaUrl: string;
      readonly scopeSpans: readonly [{ readonly scope: object; readonly schemaUrl: string; readonly spans: Listed[] }];
    },
  ];
}

export interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly batch: Batch;
}

const takes = (res: ServerResponse) => void res.setHeader('content-type', 'application/json').end('{}');

/** OTLP collector over HTTP on a loopback port. Tests may replace `answer`. */
export class Collector implements AsyncDisposable {
  readonly requests: ReceivedRequest[] = [];
  answer: (res: ServerResponse) => void = takes;
  connections = 0;
  readonly #server = createServer(async (req, res) => {
    const body = await text(req);
    this.requests.push({ path: req.url ?? '', headers: req.headers, body, batch: JSON.parse(body) });
    this.answer(res);
  });

  constructor() {
    this.#server.on('connection', () => this.connections++);
  }

  static async start(port = 0): Promise<Collector> {
    const collector = new Collector();
    await collector.listen(port);
    return collector;
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Variables for a service that sends its spans here. */
  get env(): Record<string, string> {
    return { OTEL_EXPORTER_OTLP_ENDPOINT: this.url };
  }

  get spans(): ReceivedSpan[] {
    return this.requests.flatMap(({ batch }) =>
      batch.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(spansIn)),
    );
  }

  /** All received bodies, as text. */
  get text(): string {
    return this.requests.map(({ body }) => body).join('\n');
  }

  /** Resolves with the spans of this trace when at least `count` have arrived. */
  spansOf(traceId: string, count: number): Promise<ReceivedSpan[]> {
    const found = () => this.spans.filter((span) => span.traceId === traceId);
    return until(() => (found().length >= count ? found() : undefined), `${count} spans of trace ${traceId}`);
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close().closeAllConnections();
    await once(this.#server, 'close');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** Span whose attributes have plain values. */
export interface Attributed extends ReceivedSpan {
  readonly values: Readonly<Record<string, unknown>>;
}

export function valuesOf(span: ReceivedSpan): Attributed {
  const values = Object.entries(span.attributes).map(([name, value]) => [name, Object.values(value)[0]] as const);
  return { ...span, values: Object.fromEntries(values) };
}

function spansIn({ spans }: { readonly spans: readonly Listed[] }): ReceivedSpan[] {
  return spans.map((span) => ({
    ...span,
    attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, value])),
  }));
}
