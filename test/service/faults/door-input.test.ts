import { until } from '../../support/basics/until.js';
import {
  type DoorShape,
  doorShapes,
  type OddRequest,
  oddButGood,
  oddRequests,
} from '../../support/doors/door-bodies.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

async function send({ path, isAnthropic }: DoorShape, { body, contentType = 'application/json' }: OddRequest) {
  const response = await service.fetch(path, {
    method: 'POST',
    headers: { 'content-type': contentType, ...(isAnthropic && { 'anthropic-version': '2026-10-21' }) },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { response, body: (await response.json()) as Record<string, unknown> };
}

const openAiError = { message: expect.any(String), type: expect.any(String), code: expect.any(String) };

function expectedError({ isAnthropic }: DoorShape, requestId: string | null): object {
  if (!isAnthropic) return { error: openAiError };
  const error = { type: expect.stringMatching(/_error$|_too_large$/), message: expect.any(String) };
  return { type: 'error', error, request_id: requestId };
}

const refused = doorShapes.flatMap((door) => oddRequests(door).map((odd) => [door.path, odd.name, door, odd] as const));
const taken = doorShapes.flatMap((door) => oddButGood(door).map((odd) => [door.path, odd.name, door, odd] as const));

describe('An API that receives invalid requests', () => {
  it('is tested with two hundred cases', () => {
    expect(refused.length + taken.length).toBeGreaterThan(200);
  });

  it.each(refused)('%s rejects %s in the format of its clients', async (_path, _name, door, odd) => {
    const { response, body } = await send(door, odd);
    expect(response.status).toBe(odd.status);
    expect(body).toMatchObject(expectedError(door, response.headers.get('x-request-id')));
    expect(JSON.stringify(body).length).toBeLessThan(2000);
  });

  it.each(taken)('%s accepts %s', async (_path, _name, door, odd) => {
    const { response, body } = await send(door, odd);
    expect({ status: response.status, body }).toMatchObject({ status: odd.status });
  });

  it('leaves no job or process from these requests', async () => {
    await untilJobs(service, 0, 0);
    await until(async () => (await service.jobProcesses()).length === 0, 'all processes to be gone');
    expect(service.logs.filter(({ event }) => event === 'internal_error')).toEqual([]);
  });
});
