import { Collector, type ReceivedSpan } from '../../support/service/collector.js';
import { startService } from '../../support/service/service.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const callerId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${callerId}-01`;

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const span = spans.find((each) => each.name === name);
  if (span === undefined) throw new Error(`no span ${name} among ${spans.map((each) => each.name).join(', ')}`);
  return span;
}

describe('A service without a collector', () => {
  it('logs the trace id of the caller, and creates none', async () => {
    await using service = await startService();
    await service.post('/ask', { prompt: 'hello' }, { traceparent, 'x-request-id': 'traced' });
    await service.post('/ask', { prompt: 'hello' }, { 'x-request-id': 'untraced' });
    await service.post('/ask', { prompt: 'hello' }, { traceparent: `00-${traceId}-0-01`, 'x-request-id': 'broken' });
    const record = (id: string) =>
      service.log('http_request_completed', ({ request_id: requestId }) => requestId === id);
    expect(await record('traced')).toMatchObject({ trace_id: traceId, span_id: callerId });
    for (const id of ['untraced', 'broken']) expect(Object.keys(await record(id))).not.toContain('trace_id');
  });
});

describe('A service with a collector', () => {
  it('sends spans of the request, its wait and its turn in the trace of the caller', async () => {
    await using collector = await Collector.start();
    await using service = await startService({ env: collector.env });
    await service.post('/ask', { prompt: 'hello' }, { traceparent, 'x-request-id': 'traced' });
    await service.stop();
    const spans = await collector.spansOf(traceId, 3);
    const request = named(spans, 'POST /ask');
    expect(request).toMatchObject({ parentSpanId: callerId, kind: 2 });
    expect(named(spans, 'wait')).toMatchObject({ parentSpanId: request.spanId, kind: 1 });
    expect(named(spans, 'chat eliza')).toMatchObject({ parentSpanId: request.spanId, kind: 3 });
  });
});
