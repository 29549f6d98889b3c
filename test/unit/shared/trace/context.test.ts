import { readTraceparent } from '../../../../src/shared/trace/context.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

describe('A traceparent header', () => {
  it.each([
    [`00-${traceId}-${spanId}-01`, true],
    [`00-${traceId}-${spanId}-00`, false],
    [`00-${traceId}-${spanId}-03`, true],
    [`cc-${traceId}-${spanId}-01`, true],
    [`cc-${traceId}-${spanId}-00-what-the-future-will-be-like`, false],
  ])('is parsed: %s', (header, sampled) => {
    expect(readTraceparent(header, undefined)).toEqual({ traceId, spanId, isSampled: sampled });
  });

  it.each([
    ...['', 'hello', `00-${traceId}-${spanId}`, `00-${traceId}-${spanId}-1`, `00-${traceId}-${spanId}-01-more`],
    ...[`00-${traceId}-${spanId}-01.more`, `cc-${traceId}-${spanId}-01.more`, `ff-${traceId}-${spanId}-01`],
    ...[`00-${'0'.repeat(32)}-${spanId}-01`, `00-${traceId}-${'0'.repeat(16)}-01`],
    ...[`00-${traceId.toUpperCase()}-${spanId}-01`, `00-${traceId.slice(1)}-${spanId}-01`],
    ...[`00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`, ` 00-${traceId}-${spanId}-01`],
  ])('is ignored if it is malformed: %j', (header) => {
    expect(readTraceparent(header, 'vendor=1')).toBeNull();
  });

  it.each([
    ['congo=t61rcWkgMzE,rojo=00f067aa0ba902b7', true],
    ['a'.repeat(512), true],
    ['a'.repeat(513), false],
    ['', false],
    ['a=ä', false],
  ])('has a tracestate, which is only forwarded if it is valid: %s', (state, isPassedOn) => {
    const context = readTraceparent(`00-${traceId}-${spanId}-01`, state);
    expect(context).toEqual({ traceId, spanId, isSampled: true, ...(isPassedOn && { state }) });
  });
});
