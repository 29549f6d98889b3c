import { addedUsage, type Usage } from '../../../../src/primary/cli/contract/adapter.js';
import { unsupported } from '../../../../src/primary/cli/models.js';
import type { Image, JobRequest } from '../../../../src/shared/job.js';
import { jobRequest } from '../../../support/job-records.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };
const withImage: Partial<JobRequest> = { images: [image] };
const imageBefore: Partial<JobRequest> = { history: [{ role: 'user', text: 'Look', images: [image] }] };
const told = () => ({});

describe('what a program can not be told', () => {
  it.each<[string, Partial<JobRequest>, string | null]>([
    ['a text alone', {}, null],
    ['a schema', { schema: '{}' }, null],
    ['images', withImage, 'images'],
    ['images in the history', imageBefore, 'images'],
    ['an effort', { effort: 'low' }, 'effort'],
    ['an effort that is only a wish', { effort: 'low', isEffortNeeded: false }, null],
  ])('of a request with %s, where its program knows only text', (_, differences, what) => {
    expect(unsupported({}, jobRequest(differences))).toBe(what);
    expect(unsupported({ image: told, effort: told }, jobRequest(differences))).toBeNull();
  });
});

describe('the usage of two turns', () => {
  const usage: Usage = { inputTokens: 3, outputTokens: 2, costUsd: 0.5, cacheReadTokens: 1, cacheWriteTokens: null };

  it('is the sum of what both tell', () => {
    const sum = { inputTokens: 6, outputTokens: 4, costUsd: 1, cacheReadTokens: 2, cacheWriteTokens: null };
    expect(addedUsage(usage, usage)).toEqual(sum);
  });

  it('is not known where one of them does not tell', () => {
    const { inputTokens, outputTokens } = addedUsage(usage, { ...usage, outputTokens: null });
    expect([inputTokens, outputTokens]).toEqual([6, null]);
  });
});
