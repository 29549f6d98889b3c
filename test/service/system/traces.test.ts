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

it('A service with a collector sends spans of the request, its wait and its turn in the trace of the caller', async () => {
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
