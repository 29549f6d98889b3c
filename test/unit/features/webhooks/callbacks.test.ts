import { Callbacks } from '../../../../src/features/webhooks/callbacks.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { jobDone, jobRequest } from '../../../support/jobs/job-records.js';

const url = 'https://example.org/hooks/a';

function createCallbacks(hasSecret = true) {
  const sent: unknown[] = [];
  const starts = new Map([['key ada/x', 'https://example.org/hooks/']]);
  const webhooks = { send: (...order: unknown[]) => sent.push(order) };
  const callbacks = new Callbacks(hasSecret ? webhooks : null, (client) => starts.get(client) ?? null);
  return { callbacks, sent, starts };
}

describe('A callback of a background job', () => {
  it('is accepted only within the URLs of the key, and only if the service can sign it', () => {
    const { callbacks } = createCallbacks();
    callbacks.checkUrl('key ada/x', url);
    callbacks.checkUrl('user bob', undefined);
    const refused = (client: ClientText, to: string) => () => callbacks.checkUrl(client, to);
    expect(refused('user bob', url)).toThrow('needs an API key with the option webhooks');
    expect(refused('key ada/x', 'https://evil.example/hooks/a')).toThrow('begins with https://example.org/hooks/');
    expect(() => createCallbacks(false).callbacks.checkUrl('key ada/x', url)).toThrow('MODEL_API_WEBHOOK_SECRET');
  });

  it('is sent when the job has ended, unless the key does not allow the URL any more', () => {
    const { callbacks, sent, starts } = createCallbacks();
    const request = jobRequest({ client: 'key ada/x', text: 'a secret question' });
    const job = { id: 'j1', request, end: jobDone({ text: 'a secret answer' }) };
    callbacks.jobEnded({ ...job, callbackUrl: undefined });
    callbacks.jobEnded({ ...job, callbackUrl: url });
    const data = { job_id: 'j1', client: 'key ada/x' as const, outcome: 'ok' };
    expect(sent).toMatchObject([[{ id: 'callback_j1', client: 'key ada', type: 'job.ended', data }, url]]);
    expect(JSON.stringify(sent)).not.toContain('secret');
    starts.clear();
    callbacks.jobEnded({ ...job, callbackUrl: url });
    expect(sent).toHaveLength(1);
  });
});
