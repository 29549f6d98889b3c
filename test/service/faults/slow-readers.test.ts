import { connect, type Socket } from 'node:net';
import { startReportingModel, untilProcesses } from '../../support/agents/reporting-model.js';
import { until } from '../../support/basics/until.js';
import { stream, textOf } from '../../support/clients/event-stream.js';
import { jsonPost } from '../../support/clients/raw-http.js';
import { recovers, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { memoryOf } from '../../support/processes/processes.js';
import type { Service } from '../../support/service/service.js';

const megabyte = 1024 * 1024;
/** Memory for each reader. The answer is in a file; this much was in transit once and is not garbage-collected yet. */
const socketMegabytes = 12;
const answerBytes = 10 * megabyte;
const big = { MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes), MODEL_API_MAX_CONCURRENT: '24' };

/** Requests ten megabytes and reads none of them. */
function askAndIgnore(service: Service): Socket {
  const socket = connect(service.port, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(jsonPost('/ask', JSON.stringify({ prompt: `big ${answerBytes}`, stream: true })));
  return socket;
}

async function memoryOfAll(service: Service): Promise<number> {
  const pids = [service.pid, ...(await service.workers())];
  const each = await Promise.all(pids.map(memoryOf));
  return each.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Resolves when the memory no longer grows. */
async function settledMemory(service: Service): Promise<number> {
  let before = 0;
  return until(async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const [last, now] = [before, await memoryOfAll(service)];
    before = now;
    return Math.abs(now - last) < megabyte / 2 ? now : null;
  }, 'the memory to settle');
}

describe('A client that does not read', () => {
  it('slows only its job, and needs only the memory of its socket; twenty of them disturb no other client', async () => {
    await using service = await startReportingModel(big);
    const readers = 20;
    // Runs the same work once before: reusable buffers and compiled code do not count for a reader.
    const warmUp = Array.from({ length: 4 }, () => askAndIgnore(service));
    await untilJobs(service, 4, 0);
    await settledMemory(service);
    for (const socket of warmUp) socket.destroy();
    await recovers(service);
    const before = await settledMemory(service);

    const sockets = Array.from({ length: readers }, () => askAndIgnore(service));
    await untilJobs(service, readers, 0);
    const grown = (await settledMemory(service)) - before;
    expect(grown).toBeLessThan(readers * socketMegabytes * megabyte);
    const started = performance.now();
    for (let count = 0; count < 5; count++) {
      expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
    }
    expect((performance.now() - started) / 5).toBeLessThan(4000);
    await untilProcesses(service, { busy: readers });

    const left = performance.now();
    for (const socket of sockets) socket.destroy();
    await untilTreeGone(service, 15_000);
    await untilJobs(service, 0, 0);
    expect(performance.now() - left).toBeLessThan(20_000);
  }, 90_000);

  it('gets the whole answer when it starts to read', async () => {
    await using service = await startReportingModel({ ...big, MODEL_API_STALL_TIMEOUT: '0.5' });
    await using answer = await stream(service, '/ask', { prompt: `big ${answerBytes}` });
    await answer.next('started');
    // Waits four times the stall limit: the client is silent, not the program.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const events = await answer.remainingEvents();
    expect(events.at(-1)?.event).toBe('done');
    expect(textOf(events).length).toBe(answerBytes);
    expect(events.at(-1)?.data.response).toHaveLength(answerBytes);
  });

  it('that half-closes its connection cancels its job', async () => {
    await using service = await startReportingModel(big);
    const socket = askAndIgnore(service);
    await untilJobs(service, 1, 0);
    await settledMemory(service);
    await untilProcesses(service, { busy: 1 });
    socket.end();
    await untilTreeGone(service);
    await untilJobs(service, 0, 0);
    socket.destroy();
  });

  it('that disconnects in the middle frees slot and processes within a second', async () => {
    await using service = await startReportingModel({ ...big, MODEL_API_MAX_CONCURRENT: '1' });
    const answer = await stream(service, '/ask', { prompt: `big ${answerBytes}` }, { 'x-request-id': 'slow' });
    await answer.next('started');
    await answer.next('delta');
    answer.leave();
    await untilTreeGone(service);
    await untilJobs(service, 0, 0);
    expect(await service.log('http_request_completed', ({ request_id }) => request_id === 'slow')).toMatchObject({
      status_code: 499,
      outcome: 'cancelled',
    });
  });
});

describe('A program without output', () => {
  const ask = async (service: Service, prompt: string) => (await service.post('/ask', { prompt })).body;

  it('is ended at the limit for its first output, and the error names that limit', async () => {
    await using service = await startReportingModel({ MODEL_API_STALL_TIMEOUT: '0.6' });
    expect(await ask(service, 'silent')).toMatchObject({
      error: 'timeout',
      message: 'the model was silent for 600 ms before its first output (MODEL_API_STALL_TIMEOUT)',
    });
    await recovers(service);
  });

  it('is ended at the limit between two outputs, plain and streamed, and the error names that limit', async () => {
    await using service = await startReportingModel({ MODEL_API_STALL_TIMEOUT: '0.6' });
    const failure = {
      error: 'timeout',
      message: 'the model CLI was silent for 600 ms between two outputs (MODEL_API_STALL_TIMEOUT)',
    };
    expect(await ask(service, 'hang')).toMatchObject(failure);
    await recovers(service);
    const events = await (await stream(service, '/ask', { prompt: 'hang' })).remainingEvents();
    expect(events.at(-1)).toMatchObject({ event: 'error', data: failure });
    await recovers(service);
    expect(await ask(service, 'drip 6 250')).toMatchObject({ response: '1 2 3 4 5 6 ' });
  });
});
