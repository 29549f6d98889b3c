import { untilJobs, untilTreeGone } from './jobs.js';
import { exchange, type RawAnswer } from './raw-http.js';
import type { Service } from './service.js';

/** The one answer to these bytes, after a check of what holds for every answer. */
export async function answerTo(service: Service, bytes: Buffer | string, bodyless = false): Promise<RawAnswer> {
  const answer = await exchange(service.port, bytes, bodyless);
  expectCommon(answer);
  checkContract(service, bytes, answer);
  return answer;
}

/** Bytes that begin with no request of ours, or never end one, are answered by no operation. */
function checkContract(service: Service, bytes: Buffer | string, { status, headers, text }: RawAnswer): void {
  const [, method, path] = /^([A-Z]+) (\/\S*) HTTP\/1\.1\r\n/.exec(bytes.toString('latin1')) ?? [];
  if (method === undefined || path === undefined || status < 200) return;
  service.contract.check({ method, path, status, header: (name) => headers[name], text });
}

/** What holds for every answer but one to an allowed foreign origin. */
export function expectCommon({ headers, body }: RawAnswer): void {
  const isStream = headers['content-type']?.startsWith('text/event-stream');
  const caching = isStream ? 'no-cache, no-transform' : 'no-store';
  expect(headers).toMatchObject({ 'cache-control': caching, 'x-content-type-options': 'nosniff' });
  expect(headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  if ('request_id' in body) expect(body.request_id).toBe(headers['x-request-id']);
  const names = Object.keys(headers).join(' ');
  expect(names).not.toMatch(/x-powered-by|etag|access-control-/);
}

/** An error body, whole, of any request id. */
export function failure(error: string, message: unknown) {
  return { error, message, request_id: expect.any(String) };
}

/** The body that tells of one fault. */
export function invalid(path: string, message: string) {
  return { ...failure('validation_error', `${path}: ${message}`), details: [{ path, message }] };
}

/** What is looked at here is whether, and not how fast. */
const patienceMs = 15_000;

/** Fails unless the service answers a prompt, counts no job, and has no process of one left. */
export async function expectSound(service: Service, headers: Record<string, string> = {}): Promise<void> {
  expect(await service.post('/ask', { prompt: 'Are you there?' }, headers)).toMatchObject({ status: 200 });
  await untilTreeGone(service, patienceMs);
  await untilJobs(service, 0, 0);
}
