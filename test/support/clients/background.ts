import { until } from '../basics/until.js';
import type { Service } from '../service/service.js';

type Headers = Record<string, string>;

/** Starts a background job; resolves with its id. */
export async function askInBackground(service: Service, prompt: string, headers: Headers = {}): Promise<string> {
  const { status, body, text } = await service.post('/ask', { prompt }, { ...headers, prefer: 'respond-async' });
  if (status !== 202) throw new Error(text);
  return String(body.job_id);
}

export async function statusOf(service: Service, id: unknown, headers: Headers = {}): Promise<unknown> {
  return (await service.get(`/jobs/${id}`, headers)).body.status;
}

/** Resolves with the body of GET /jobs/{job_id} after the job has ended. */
export function untilEnded(service: Service, id: unknown, headers: Headers = {}): Promise<Record<string, unknown>> {
  return until(async () => {
    const { body } = await service.get(`/jobs/${id}`, headers);
    return body.status === 'queued' || body.status === 'running' ? null : body;
  }, 'the end of a background job');
}

export function untilStatus(service: Service, id: unknown, status: string, headers: Headers = {}): Promise<boolean> {
  return until(async () => (await statusOf(service, id, headers)) === status, `a job that is ${status}`);
}
