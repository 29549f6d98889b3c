import { freePort } from '../../support/basics/free-port.js';
import { until } from '../../support/basics/until.js';
import type { SeenAnswer } from '../../support/clients/sdk-client.js';
import { keys, occupied, orderedProgram, type SdkFace, type SdkLab } from '../../support/clients/sdk-lab.js';
import { type Service, startService } from '../../support/service/service.js';

/** Tests when the SDK sends a request again. */
export function describeRetries(lab: SdkLab, face: SdkFace): void {
  const statuses = async (service: Service, input: object) => {
    const { seen } = await lab.client.call(service, face.name, 'ask', { maxRetries: 3, ...input });
    return seen.map(({ status }) => status);
  };

  it('retries a rate-limited request when the window has passed', async () => {
    const input = { key: keys.brief, prompt: 'Hello' };
    const seen = await until(async () => {
      const found = await statuses(lab.strict, input);
      return found.length > 1 ? found : null; // the window may pass between two calls
    }, 'a refused request');
    expect(seen).toEqual([429, 200]);
  });

  it('retries a request that was refused by a full queue, when there is room', async () => {
    const occupants = await occupied(lab.strict, 2, keys.all);
    const refused = nextRefusal(lab.strict);
    const answered = statuses(lab.strict, { key: keys.all });
    await refused;
    occupants[Symbol.dispose]();
    expect(await answered).toEqual([429, 200]);
  });

  it('retries a request that was refused by a draining service, when its successor runs', async () => {
    const port = await freePort();
    const first = await startOrdered(port);
    const occupants = await occupied(first);
    first.process.kill('SIGTERM');
    await first.log('shutdown_start');
    const refused = nextRefusal(first);
    const answered = statuses(first, { maxRetries: 8 }); // no listener exists until the second request has started
    await refused;
    occupants[Symbol.dispose]();
    await first.exited; // a second SIGTERM would cut a job whose client has left a moment ago
    expect(await first.stop()).toBe(0);
    await using _second = await startOrdered(port);
    expect(await answered).toEqual([503, 200]);
  });

  it('gets the lost first answer again, if the request has an idempotency key', async () => {
    for (const call of ['ask', 'stream']) {
      const headers = { 'Idempotency-Key': `${call} lost by ${face.name}` };
      const input = { prompt: 'Hello', headers, losesFirst: true, maxRetries: 1 };
      const { result, seen } = await lab.client.call(lab.demo, face.name, call, input);
      expect(seen).toMatchObject([{ status: 200, 'idempotency-replayed': 'true' }]);
      expect(JSON.stringify(result)).toContain('Eliza');
    }
  });

  it.each([
    ['overloaded', overloadedStatus[face.dialect]],
    ['other', 500],
  ])('sends nothing again when the model has already run: %s', async (reason, status) => {
    const input = { key: keys.all, prompt: `fail ${reason}`, maxRetries: 1 };
    const { seen } = await lab.client.failure(lab.strict, face.name, 'ask', input);
    expect(seen.map((answer) => answer['x-should-retry'])).toEqual(seen.map(() => 'false'));
    expect(seen.map((answer) => answer.status)).toEqual([status]);
    await until(() => arrivals(lab.strict, seen) === seen.length, 'the log to tell of them');
  });
}

const overloadedStatus = { openai: 503, anthropic: 529 } as const;

function startOrdered(port: number): Promise<Service> {
  return startService({ env: { ...orderedProgram, MODEL_API_MAX_CONCURRENT: '1', MODEL_API_PORT: String(port) } });
}

/** Resolves when the service has refused one more request than before. */
async function nextRefusal(service: Service): Promise<void> {
  const refusals = () => service.logs.filter(({ status_code }) => status_code === 429 || status_code === 503).length;
  const before = refusals();
  await until(() => refusals() > before, 'a refusal');
}

/** Returns how many of these requests the service has logged. */
function arrivals(service: Service, seen: readonly SeenAnswer[]): number {
  const ids = new Set(seen.map((answer) => answer['x-request-id']));
  return service.logs.filter(({ event, request_id: id }) => event === 'http_request_completed' && ids.has(id)).length;
}
