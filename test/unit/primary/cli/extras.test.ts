import { addedUsage, type Usage } from '../../../../src/primary/cli/contract/adapter.js';
import { unsupported } from '../../../../src/primary/cli/models.js';
import type { Image, JobRequest } from '../../../../src/shared/job.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };
const withImage: Partial<JobRequest> = { images: [image] };
const imageBefore: Partial<JobRequest> = { history: [{ role: 'user', text: 'Look', images: [image] }] };
const told = () => ({});

it.each<[string, Partial<JobRequest>, string | null]>([
  ['a text alone', {}, null],
  ['a schema', { schema: '{}' }, null],
  ['images', withImage, 'images'],
  ['images in the history', imageBefore, 'images'],
  ['an effort', { effort: 'low' }, 'effort'],
  ['an effort that is only a wish', { effort: 'low', isEffortNeeded: false }, null],
])(
  'The inputs that a program does not support are reported for a request with %s if its program supports only text',
  (_, differences, what) => {
    expect(unsupported({}, jobRequest(differences), false)).toBe(what);
    expect(unsupported({ image: told, effort: told }, jobRequest(differences), false)).toBeNull();
  },
);

describe('The combined usage of two turns', () => {
  const usage: Usage = { inputTokens: 3, outputTokens: 2, costUsd: 0.5, cacheReadTokens: 1, cacheWriteTokens: null };

  it('is the sum of both', () => {
    const sum = { inputTokens: 6, outputTokens: 4, costUsd: 1, cacheReadTokens: 2, cacheWriteTokens: null };
    expect(addedUsage(usage, usage)).toEqual(sum);
  });

  it('is unknown if one of them reports none', () => {
    const { inputTokens, outputTokens } = addedUsage(usage, { ...usage, outputTokens: null });
    expect([inputTokens, outputTokens]).toEqual([6, null]);
  });
});
