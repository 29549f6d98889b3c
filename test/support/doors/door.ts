import { exchange, type RawAnswer } from '../clients/raw-http.js';
import { untilJobs, untilTreeGone } from '../jobs/jobs.js';
import type { Service } from '../service/service.js';

/** Sends these bytes, checks the rules for all answers, and returns the answer. */
export async function answerTo(service: Service, bytes: Buffer | string, bodyless = false): Promise<RawAnswer> {
  const answer = await exchange(service.port, bytes, bodyless);
  expectCommon(answer);
  checkContract(service, bytes, answer);
  return answer;
}

/** Checks the answer against the OpenAPI document, if the bytes are a request: broken HTTP belongs to no operation. */
function checkContract(service: Service, bytes: Buffer | string, { status, headers, text }: RawAnswer): void {
  const [, method, path] = /^([A-Z]+) (\/\S*) HTTP\/1\.1\r\n/.exec(bytes.toString('latin1')) ?? [];
  if (method === undefined || path === undefined || status < 200) return;
  service.contract.check({ method, path, status, header: (name) => headers[name], text });
}

/** Checks the rules for all answers, except to an allowed foreign origin. */
export function expectCommon({ headers, body }: RawAnswer): void {
  const isStream = headers['content-type']?.startsWith('text/event-stream');
  const caching = isStream ? 'no-cache, no-transform' : 'no-store';
  expect(headers).toMatchObject({ 'cache-control': caching, 'x-content-type-options': 'nosniff' });
  expect(headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  if ('request_id' in body) expect(body.request_id).toBe(headers['x-request-id']);
  const names = Object.keys(headers).join(' ');
  expect(names).not.toMatch(/x-powered-by|etag|access-control-/);
}

/** Returns the complete error body, with any request id. */
export function failure(error: string, message: unknown) {
  return { error, message, request_id: expect.any(String) };
}

/** Returns the error body for one invalid field. */
export function invalid(path: string, message: string) {
  return { ...failure('validation_error', `${path}: ${message}`), details: [{ path, message }] };
}

/** Generous, because only the result matters here, not the speed. */
const patienceMs = 15_000;

/** Expects that the service answers a prompt, and that no job and no process is left. */
export async function expectSound(service: Service, headers: Record<string, string> = {}): Promise<void> {
  expect(await service.post('/ask', { prompt: 'Are you there?' }, headers)).toMatchObject({ status: 200 });
  await untilTreeGone(service, patienceMs);
  await untilJobs(service, 0, 0);
}
