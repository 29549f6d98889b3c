import { learnFrom } from '../../../src/primary/readiness/readiness.js';
import type { CliReason } from '../../../src/shared/errors.js';
import type { JobEnd, JobFailed } from '../../../src/shared/job.js';
import { FakeReadiness } from '../../support/job-harness.js';
import { jobDone, jobFailed } from '../../support/job-records.js';

function cliFailed(reason: CliReason): JobFailed {
  const scope = reason === 'auth' ? 'account' : undefined;
  return jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason, scope }, executionMs: 70 });
}

/** No code says so. */
function seemsUnauthorized(): JobFailed {
  return jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason: 'auth' } });
}

function ofNoFault(reason: CliReason): [string, JobEnd, string[], boolean] {
  return [`nothing, where the reason is ${reason}`, cliFailed(reason), [], false];
}

describe('what the end of a job shows of the CLI', () => {
  it.each<[string, JobEnd, string[], boolean]>([
    ['that it could not be started', jobFailed('spawn_error'), ['failed spawn_error null', 'doubt'], true],
    ['that its credential was refused', cliFailed('auth'), ['refused 70'], true],
    ['that it should be asked, where only words say so', seemsUnauthorized(), ['doubt'], false],
    ['that it answers', jobDone({ executionMs: 50 }), ['answered 50'], false],
    ['nothing, where the quota is used up', cliFailed('quota'), [], false],
    ['that it crashed', cliFailed('crashed'), ['failed crashed a'], false],
    ['that it said nothing', cliFailed('empty_answer'), ['failed empty_answer a'], false],
    ['that it failed otherwise', cliFailed('other'), ['failed other a'], false],
    ...(['overloaded', 'prompt_too_long', 'model_unknown', 'output_too_large'] as const).map(ofNoFault),
    ...(['schema_mismatch', 'refused', 'host_lost'] as const).map(ofNoFault),
    ['nothing, where it took too long', jobFailed('timeout'), [], false],
    ['nothing, where the caller has gone', jobFailed('cancelled'), [], false],
  ])('is %s', (_, end, told, mayHoldInvalidCredential) => {
    const readiness = new FakeReadiness();
    expect(learnFrom(end, readiness, 'a')).toBe(mayHoldInvalidCredential);
    expect(readiness.told).toEqual(told);
  });

  it('is that a credential is taken again, which processes that wait may not hold', () => {
    const readiness = new FakeReadiness();
    readiness.isNews = true;
    expect(learnFrom(jobDone(), readiness, 'a')).toBe(true);
  });
});
