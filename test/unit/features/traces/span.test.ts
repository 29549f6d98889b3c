import { attributesText, type Span, spanTexts } from '../../../../src/features/traces/span.js';

/** Returns the JSON of a span. */
function written(span: Span) {
  return JSON.parse(spanTexts([span])[0] ?? '');
}

const span: Span = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentId: null,
  name: 'POST /ask',
  kind: 'server',
  startMs: 1_700_000_000_123.456,
  endMs: 1_700_000_000_123.956,
  attributes: [],
};

describe('A span', () => {
  it('is serialized as OTLP JSON: ids in hex, kinds as numbers, times as strings of nanoseconds', () => {
    expect(written({ ...span, parentId: '00f067aa0ba902b7', isParentRemote: true, state: 'a=1' })).toEqual({
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: '00f067aa0ba902b7',
      traceState: 'a=1',
      flags: 0x301,
      name: 'POST /ask',
      kind: 2,
      startTimeUnixNano: expect.stringMatching(/^1700000000123456\d{3}$/),
      endTimeUnixNano: expect.stringMatching(/^1700000000123956\d{3}$/),
      attributes: [],
    });
  });

  it('never ends before its start, whatever the clock has done', () => {
    const text = written({ ...span, endMs: span.startMs - 5000 });
    expect(text.endTimeUnixNano).toBe(text.startTimeUnixNano);
  });

  it('has exact nanoseconds for whole milliseconds', () => {
    expect(written({ ...span, startMs: 5, endMs: 7.000001 })).toMatchObject({
      startTimeUnixNano: '5000000',
      endTimeUnixNano: '7000001',
    });
  });
});

it('Attributes have the types of OTLP, and those without a value are omitted', () => {
  expect(
    JSON.parse(attributesText({ a: 'x', b: 3, c: 0.5, d: true, e: ['stop'], f: null, g: undefined, h: '' })),
  ).toEqual([
    { key: 'a', value: { stringValue: 'x' } },
    { key: 'b', value: { intValue: '3' } },
    { key: 'c', value: { doubleValue: 0.5 } },
    { key: 'd', value: { boolValue: true } },
    { key: 'e', value: { arrayValue: { values: [{ stringValue: 'stop' }] } } },
    { key: 'h', value: { stringValue: '' } },
  ]);
});
