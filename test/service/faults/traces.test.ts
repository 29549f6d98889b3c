import { maxBatch, maxWaiting } from '../../../src/features/traces/span-exporter.js';
import { freePort } from '../../support/basics/free-port.js';
import { until } from '../../support/basics/until.js';
import { orderFor, ToolClient } from '../../support/clients/tool-client.js';
import { metric } from '../../support/documents/exposition.js';
import { type Attributed, Collector, type ReceivedSpan, valuesOf } from '../../support/service/collector.js';
import { type Service, script, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';

const secret = 'nobody-may-read-this';
const callerId = 'b7ad6b7169203331';
const error = { code: 2 };

/** Trace of a caller: its ID, and the header that contains it. */
function callerTrace(n: number) {
  const traceId = n.toString(16).padStart(32, 'a');
  return { traceId, headers: { traceparent: `00-${traceId}-${callerId}-01` } };
}

/** Resolves with the spans of a trace by name, once there is one of each name. */
async function byName(collector: Collector, traceId: string, ...names: string[]): Promise<Record<string, Attributed>> {
  const spans = await collector.spansOf(traceId, names.length);
  expect(spans.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  return Object.fromEntries(spans.map((span) => [span.name, valuesOf(span)]));
}

/** Expects the properties that all spans have in any case. */
function expectSound(collector: Collector): void {
  const ids = collector.spans.map(({ spanId }) => spanId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const span of collector.spans) expectSpan(span);
  expect(collector.text).not.toMatch(/nobody-may-read-this|Ada|note\b|hello there/);
}

function expectSpan(span: ReceivedSpan): void {
  expect(span.traceId).toMatch(/^[\da-f]{32}$/);
  expect(span.spanId).toMatch(/^[\da-f]{16}$/);
  expect([1, 2, 3]).toContain(span.kind);
  for (const time of [span.startTimeUnixNano, span.endTimeUnixNano]) expect(time).toMatch(/^\d{19}$/);
  expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true);
}

async function stopped(service: Service): Promise<void> {
  await service.stop();
  expect(service.logs.filter(({ event }) => event === 'internal_error')).toEqual([]);
}

describe('The spans of a service', () => {
  it('cover streams, conversations and their processes, and never contain prompts or answers', async () => {
    await using collector = await Collector.start();
    await using service = await startService({ env: { ...collector.env, MODEL_API_LIVE_SESSIONS: '4' } });
    const [streamed, first, second] = [callerTrace(1), callerTrace(2), callerTrace(3)];
    await service.post('/ask', { prompt: secret, stream: true }, streamed.headers);
    const { body } = await service.post('/chat', { message: `${secret}, hello there` }, first.headers);
    await service.post('/chat', { message: secret, conversation_id: body.conversation_id }, second.headers);
    await stopped(service);
    const stream = await byName(collector, streamed.traceId, 'POST /ask', 'wait', 'cli start', 'chat eliza');
    expect(stream['chat eliza']?.values).toMatchObject({
      'gen_ai.request.stream': true,
      'prompt_relay.process': 'new',
    });
    await byName(collector, first.traceId, 'POST /chat', 'wait', 'cli start', 'chat eliza');
    const next = await byName(collector, second.traceId, 'POST /chat', 'wait', 'chat eliza');
    expect(next['chat eliza']?.values).toMatchObject({
      'gen_ai.conversation.id': body.conversation_id,
      'prompt_relay.process': 'live',
    });
    for (const { name, parentSpanId, spanId } of Object.values(next)) {
      expect([name, parentSpanId]).toEqual([name, name === 'POST /chat' ? callerId : next['POST /chat']?.spanId]);
      expect(spanId).not.toBe(parentSpanId);
    }
    expectSound(collector);
  });

  it('cover a round of tools from the calls to their results', async () => {
    await using collector = await Collector.start();
    await using service = await startService({ env: { ...collector.env, MODEL_API_LIVE_SESSIONS: '4' } });
    const client = new ToolClient(service);
    await client.say(orderFor('Ada'));
    await client.answer(() => secret);
    await stopped(service);
    const round = collector.spans.find(({ name }) => name === 'tool round');
    expect(round && valuesOf(round).values).toEqual({
      'prompt_relay.tool_round.outcome': 'live',
      'prompt_relay.tool_round.results': '1',
    });
    const [called] = collector.spans.filter(({ name }) => name === 'chat eliza').map(valuesOf);
    expect(called?.values['gen_ai.response.finish_reasons']).toEqual({ values: [{ stringValue: 'tool_calls' }] });
    expectSound(collector);
  });

  it('show how failed, timed-out and cancelled jobs ended', async () => {
    await using collector = await Collector.start();
    const env = { ...collector.env, MODEL_API_TIMEOUT: '4', MODEL_API_MAX_CONCURRENT: '1' };
    await using service = await startWithProgram(script('forever.pl'), env);
    const [late, gone] = [callerTrace(4), callerTrace(5)];
    const leaving = new AbortController();
    const running = service.post('/ask', { prompt: secret }, late.headers);
    await until(async () => (await service.jobProcesses()).length > 0, 'the first job to run');
    const cancelled = service.post('/ask', { prompt: secret }, gone.headers, leaving.signal).catch(() => null);
    await until(async () => (await metric(service, 'jobs_queued')) === 1, 'the second job to wait');
    leaving.abort();
    expect((await running).status).toBe(504);
    await cancelled;
    await service.log('http_request_completed', ({ status_code: status }) => status === 499);
    await stopped(service);
    const ofLate = await collector.spansOf(late.traceId, 3);
    for (const span of ofLate.filter(({ name }) => name !== 'wait')) {
      expect(span.status).toEqual(error);
      expect(valuesOf(span).values['error.type']).toBe('timeout');
    }
    const ofGone = await byName(collector, gone.traceId, 'POST /ask', 'wait');
    for (const span of Object.values(ofGone)) {
      expect(span).toMatchObject({ status: error, values: { 'error.type': 'cancelled' } });
    }
    expectSound(collector);
  });

  it('end with a killed worker, and the primary still sends them', async () => {
    await using collector = await Collector.start();
    await using service = await startWithProgram(script('forever.pl'), { ...collector.env, ...twoWorkers });
    const { traceId, headers } = callerTrace(6);
    const asked = service.post('/ask', { prompt: secret }, headers).catch(() => null);
    await until(async () => (await service.jobProcesses()).length > 0, 'the job to run');
    for (const pid of await service.workers()) process.kill(pid, 'SIGKILL');
    await asked;
    expect(await service.log('job_ended')).toMatchObject({ trace_id: traceId });
    await stopped(service);
    const spans = await collector.spansOf(traceId, 2);
    const turn = spans.find(({ name }) => name.startsWith('chat'));
    expect(turn).toMatchObject({ status: error });
    expect(turn && valuesOf(turn).values['error.type']).toBe('cancelled');
  });
});

describe('A trace collector', () => {
  it('that is down affects no job, and is logged once, and once when it is back', async () => {
    const port = await freePort();
    await using service = await startService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
    expect((await service.post('/ask', { prompt: 'hello there' })).status).toBe(200);
    expect(await service.log('trace_export_failed')).toMatchObject({ error: 'no connection: ECONNREFUSED' });
    await using collector = await Collector.start(port);
    await service.log('trace_export_back');
    expect((await service.post('/ask', { prompt: 'hello there' })).status).toBe(200);
    await stopped(service);
    expect(collector.spans.filter(({ name }) => name === 'POST /ask')).toHaveLength(2);
    expect(service.logs.filter(({ event }) => event.startsWith('trace_export')).map(({ event }) => event)).toEqual([
      'trace_export_failed',
      'trace_export_back',
    ]);
  });

  it('that never answers affects no job, and spans above the limit are dropped', async () => {
    await using collector = await Collector.start();
    collector.answer = () => {};
    await using service = await startService({ env: collector.env });
    for (let n = 0; n < 40; n++) await Promise.all(Array.from({ length: 100 }, () => service.post('/nowhere', {})));
    const dropped = () => metric(service, 'trace_spans_total{result="dropped"}');
    await until(async () => (await dropped()) >= 4000 - maxBatch - maxWaiting, 'all spans above the bound');
    expect((await service.post('/ask', { prompt: 'hello there' })).status).toBe(200);
    expect(service.logs.filter(({ event }) => event.startsWith('trace_export'))).toHaveLength(1);
    const before = collector.requests.length;
    expect(await service.stop()).toBe(0);
    expect(service.logs.at(-1)).toMatchObject({ event: 'shutdown_complete' });
    expect(collector.requests.length - before).toBeLessThanOrEqual(1); // the rest is dropped, not sent batch by batch
  });

  it('that rejects all or some spans is counted', async () => {
    await using collector = await Collector.start();
    collector.answer = (res) => void res.writeHead(500).end();
    await using service = await startService({ env: collector.env });
    await service.post('/ask', { prompt: 'hello there' });
    await service.log('trace_export_failed', ({ error: reason }) => reason === 'the collector answered 500');
    const dropped = await metric(service, 'trace_spans_total{result="dropped"}');
    expect(dropped).toBe(collector.spans.length);
    collector.answer = (res) => void res.end('{"partialSuccess":{"rejectedSpans":"1"}}');
    await service.post('/ask', { prompt: 'hello there' });
    await until(async () => (await metric(service, 'trace_spans_total{result="exported"}')) > 0, 'spans to be taken');
    expect(await metric(service, 'trace_spans_total{result="dropped"}')).toBe(dropped + 1);
    await stopped(service);
  });
});
