import { RequestSpans } from '../../../../src/features/traces/request-spans.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { atRoute, type Handler } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';
import { request } from '../../../support/clients/raw-http.js';
import { type ExpressServer, passed, serveWith } from '../../../support/doors/express-server.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const callerId = 'b7ad6b7169203331';
const traceparent = `traceparent: 00-${traceId}-${callerId}-01`;
const all = { isParentBased: true, ratio: 1 };

/** Returns the attributes of a span by name. */
function attributesOf(span: Record<string, unknown>): Record<string, unknown> {
  const list = span.attributes as readonly { key: string; value: Record<string, unknown> }[];
  return Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/** Starts a server that exports its spans in batches. */
async function traced(handlers: readonly Handler[], sampler = all) {
  const batches: Record<string, unknown>[][] = [];
  const primary = {
    call: (_name: string, { texts }: { readonly texts: readonly string[] }) => {
      batches.push(texts.map((text) => JSON.parse(text)));
      return Promise.resolve({});
    },
  };
  const clock = new FakeClock();
  const spans = new RequestSpans(sampler, primary as never, clock);
  const server = await serveWith(handlers, { tracer: spans });
  /** Returns the spans of all requests that have ended. */
  const sent = () => {
    spans.sendSpans();
    return batches.flat();
  };
  return { server, clock, batches, sent, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

async function fieldsOf({ log }: ExpressServer) {
  return (await until(() => log.entries[0], 'the record')).fields;
}

const failing = (error: RelayError): Handler => {
  return () => {
    throw error;
  };
};

describe('The span of a request', () => {
  it('is a child of the span of the caller, and is named in the log', async () => {
    await using host = await traced([atRoute('/ask'), passed]);
    const headers = [traceparent, 'tracestate: a=1', 'X-Request-Id: mine'];
    expect((await host.server.send(request('POST /ask?key=secret', headers))).status).toBe(200);
    const { span_id: spanId, ...fields } = await fieldsOf(host.server);
    expect(fields).toMatchObject({ trace_id: traceId, request_id: 'mine' });
    expect(host.sent()).toMatchObject([
      { traceId, spanId, parentSpanId: callerId, traceState: 'a=1', flags: 0x301, name: 'POST /ask', kind: 2 },
    ]);
    expect(attributesOf(host.sent()[0] ?? {})).toEqual({
      'http.request.method': 'POST',
      'http.route': '/ask',
      'http.response.status_code': '200',
      'network.protocol.version': '1.1',
      'url.path': '/ask',
      'url.scheme': 'http',
      'prompt_relay.request_id': 'mine',
    });
    expect(host.sent()[0]).not.toHaveProperty('status');
  });

  it('starts a trace if the caller has none, except for requests that only read', async () => {
    await using host = await traced([passed]);
    await host.server.get();
    expect(await fieldsOf(host.server)).not.toHaveProperty('trace_id');
    await host.server.send(request('POST /elsewhere'));
    await host.server.get(traceparent);
    expect(host.sent()).toMatchObject([{ name: 'POST' }, { name: 'GET', traceId }]);
    expect(host.sent()[0]).not.toHaveProperty('parentSpanId');
    expect(host.sent()[0]?.traceId).toMatch(/^[\da-f]{32}$/);
  });

  it.each([
    [`traceparent: 00-${traceId}-${callerId}-00`, all],
    [traceparent, { isParentBased: false, ratio: 0 }],
  ])('is not created if it is not sampled, and the log names the span of the caller', async (header, sampler) => {
    await using host = await traced([passed], sampler);
    await host.server.send(request('POST /', [header]));
    expect(await fieldsOf(host.server)).toMatchObject({ trace_id: traceId, span_id: callerId });
    expect(host.sent()).toEqual([]);
  });

  it('has the error code for a failure of the service, and none for an invalid request', async () => {
    await using host = await traced([failing(new RelayError('timeout', 'a secret of the model'))]);
    await host.server.send(request('POST /'));
    expect(host.sent()[0]).toMatchObject({ status: { code: 2 } });
    expect(attributesOf(host.sent()[0] ?? {})).toMatchObject({
      'error.type': 'timeout',
      'http.response.status_code': '504',
    });
    expect(JSON.stringify(host.sent())).not.toContain('secret');
    await using other = await traced([failing(new RelayError('validation_error', 'wrong'))]);
    await other.server.send(request('POST /'));
    expect(other.sent()[0]).not.toHaveProperty('status');
    expect(attributesOf(other.sent()[0] ?? {})).not.toHaveProperty('error.type');
  });

  it('is sent with others after a second, or at once for 64', async () => {
    await using host = await traced([passed]);
    const ask = async (count: number) => {
      const before = host.server.log.entries.length;
      for (let n = 0; n < count; n++) await host.server.send(request('POST /'));
      await until(() => host.server.log.entries.length === before + count, 'the ends of the requests');
    };
    await ask(2);
    await host.clock.advance(999);
    expect(host.batches).toEqual([]);
    await host.clock.advance(1);
    expect(host.batches).toMatchObject([[{ name: 'POST' }, { name: 'POST' }]]);
    await ask(64);
    expect(host.batches[1]).toHaveLength(64);
    expect(host.clock.pending).toBe(0);
  });

  it('has a generic name for an unknown method', async () => {
    await using host = await traced([passed]);
    await host.server.send(request('PURGE /', [traceparent]));
    expect(host.sent()).toMatchObject([{ name: 'HTTP' }]);
    expect(attributesOf(host.sent()[0] ?? {})).toMatchObject({ 'http.request.method': '_OTHER' });
  });
});
