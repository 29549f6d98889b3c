import { createPart } from '../../../../src/features/webhooks/worker.js';
import type { WorkerCore } from '../../../../src/worker/features/feature.js';
import type { JobOfRequest } from '../../../../src/worker/jobs/admission.js';

const url = 'https://example.org/hooks/a';
const part = createPart({} as WorkerCore as never);
const admitJob = (job: JobOfRequest) => part.admitJob?.(job);

/** Returns a request with these values of the header, and this field in its body. */
function jobWith(isBackground: boolean, inHeader: readonly string[], inBody?: string): JobOfRequest {
  const headers = inHeader.length > 0 ? { 'x-callback-url': inHeader.join(', ') } : {};
  const headersDistinct = inHeader.length > 0 ? { 'x-callback-url': [...inHeader] } : {};
  return {
    req: { headers, headersDistinct },
    fields: inBody === undefined ? {} : { callback_url: inBody },
    isBackground,
  };
}

describe('The URL of a callback', () => {
  it('is that of the header, or of the body', () => {
    expect(admitJob(jobWith(true, [url]))).toEqual({ callbackUrl: url });
    expect(admitJob(jobWith(true, [], url))).toEqual({ callbackUrl: url });
    expect(admitJob(jobWith(true, []))).toEqual({});
  });

  it.each([
    ['twice in headers', jobWith(true, [url, url])],
    ['in a header and in the body', jobWith(true, [url], url)],
  ])('must not be sent %s', (_, job) => {
    expect(() => admitJob(job)).toThrow(/^x-callback-url: must be sent once/);
  });

  it('is refused if the request gets its answer itself', () => {
    expect(() => admitJob(jobWith(false, [url]))).toThrow('needs a background job');
    expect(() => admitJob(jobWith(false, [], url))).toThrow('needs the header Prefer: respond-async');
    expect(admitJob(jobWith(false, []))).toEqual({});
  });
});
