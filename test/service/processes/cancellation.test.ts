import { until } from '../../support/basics/until.js';
import { recovers, runtimeOf, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

/** Ten times the usual, for a busy machine. The job ahead never ends. */
const queueLeftMs = 1000;

/** Sends a request that can be aborted, like a client that disconnects. */
function askAndLeave(service: Service, requestId: string) {
  const client = new AbortController();
  const gone = service
    .post('/ask', { prompt: 'hello' }, { 'x-request-id': requestId }, client.signal)
    .then(() => Promise.reject(new Error('it was answered')))
    .catch((error: Error) => expect(error.name).toBe('AbortError'));
  const leave = async () => {
    client.abort();
    await gone;
  };
  return { leave };
}

describe('A client that disconnects', () => {
  it.each(['forever.pl', 'ignores-sigterm.pl', 'double-fork-setsid.pl'])(
    'cancels its running job: %s',
    async (program) => {
      await using service = await startWithProgram(script(program), { MODEL_API_MAX_CONCURRENT: '1' });
      const client = askAndLeave(service, 'running');
      await until(async () => (await service.jobProcesses()).length > 0, 'the program to run');
      await client.leave();
      await untilTreeGone(service);
      await recovers(service);
      const record = await service.log('http_request_completed', (fields) => fields.request_id === 'running');
      expect(record).toMatchObject({ status_code: 499, outcome: 'cancelled', queue_ms: expect.any(Number) });
      expect(record.execution_ms).toBeGreaterThan(0);
    },
  );

  it('leaves the queue at once, and other clients stay in it', async () => {
    await using service = await startWithProgram(script('forever.pl'), { MODEL_API_MAX_CONCURRENT: '1' });
    const running = askAndLeave(service, 'running');
    await untilJobs(service, 1, 0);
    const waiting = ['first', 'second', 'third'].map((name) => askAndLeave(service, name));
    const [, second] = waiting;
    await untilJobs(service, 1, 3);

    const started = performance.now();
    await second?.leave();
    await untilJobs(service, 1, 2, queueLeftMs);
    expect(performance.now() - started).toBeLessThan(2 * queueLeftMs);
    const record = await service.log('http_request_completed', (fields) => fields.request_id === 'second');
    expect(record).toMatchObject({ status_code: 499, outcome: 'cancelled', execution_ms: 0 });
    expect(record.queue_ms).toBeGreaterThan(0);

    await running.leave();
    await untilJobs(service, 1, 1);
    expect(await runtimeOf(service)).toMatchObject({ rejected_total: 0, queue_timeouts_total: 0 });
    for (const client of waiting) await client.leave();
    await recovers(service);
  });
});
