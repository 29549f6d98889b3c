import type { Request } from 'express';
import { followsJob, prefersAsync } from '../../../../src/features/background/preference.js';
import { processorMs } from '../../../support/processes/processor-time.js';

function prefers(prefer: string | undefined): boolean {
  return prefersAsync({ get: () => prefer } as unknown as Pick<Request, 'get'>);
}

describe('A Prefer header', () => {
  it.each([
    ...['respond-async', 'Respond-Async', ' respond-async ', 'wait=10, respond-async'],
    ...['respond-async; x=y', 'a="b", respond-async', 'respond-async=""', 'respond-async = ; x=y'],
  ])('requests a background job: %s', (prefer) => expect(prefers(prefer)).toBe(true));

  it.each([
    ...[undefined, '', 'wait=10', 'respond-asynchronously', 'respond-async2', 'x=respond-async', '""respond-async2'],
    ...['x="a, respond-async, b"', 'x="\\", respond-async', 'x="', '"respond-async"', 'respond-async=1'],
    'respond-async="no"',
  ])('requests no background job: %s', (prefer) => expect(prefers(prefer)).toBe(false));

  it.each([
    ['respond-async; followed', true],
    ['wait=1, respond-async;x=y ; Followed=""', true],
    ['respond-async', false],
    ['respond-async; followed=no', false],
    ['respond-async, x; followed', false],
    ['respond-async; x="; followed"', false],
  ])('says whether the client follows its job: %s', (prefer, isFollowed) => {
    expect(followsJob({ get: () => prefer } as unknown as Pick<Request, 'get'>)).toBe(isFollowed);
  });

  it('of any length is parsed quickly', () => {
    const begunMs = processorMs();
    for (const part of ['"\\', '"', ',', ' ', 'respond-async ', '"\\"']) prefers(part.repeat(16_000));
    expect(processorMs() - begunMs).toBeLessThan(500);
  });
});
