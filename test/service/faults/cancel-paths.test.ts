import { askForReport, startReportingModel, untilProcesses } from '../../support/agents/reporting-model.js';
import { until } from '../../support/basics/until.js';
import { stream } from '../../support/clients/event-stream.js';
import { jsonPost, RawConnection } from '../../support/clients/raw-http.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script } from '../../support/service/service.js';

interface Leaving {
  readonly name: string;
  readonly leave: (connection: RawConnection) => void;
}

const ways: readonly Leaving[] = [
  { name: 'closes', leave: (connection) => connection[Symbol.dispose]() },
  { name: 'resets', leave: (connection) => connection.reset() },
  { name: 'closes its own half', leave: (connection) => connection.endInput() },
];

const oneSlot = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_LIVE_SESSIONS: '2' };

/** Sends a request on a new connection; the log identifies it by this ID. */
async function send(service: Service, path: string, body: object, requestId: string): Promise<RawConnection> {
  const connection = await RawConnection.open(service.port);
  connection.send(jsonPost(path, JSON.stringify(body), [`X-Request-Id: ${requestId}`]));
  return connection;
}

/** Expects that the request was cancelled, and that no process or slot is left. */
async function expectGone(service: Service, requestId: string): Promise<void> {
  await untilTreeGone(service);
  await untilJobs(service, 0, 0);
  await expectCancelled(service, requestId);
}

async function expectCancelled(service: Service, requestId: string): Promise<void> {
  const record = await service.log('http_request_completed', (fields) => fields.request_id === requestId);
  expect(record).toMatchObject({ status_code: 499, outcome: 'cancelled' });
}

describe.each(ways)('A client that $name', ({ leave }) => {
  describe.each([false, true])('(streamed: %s)', (isStreamed) => {
    it('cancels its job: before the first output, between deltas, in a live session, in the queue', async () => {
      await using service = await startReportingModel(oneSlot);
      for (const prompt of ['silent', 'drip 2000 10']) {
        using connection = await send(service, '/ask', { prompt, stream: isStreamed }, prompt.slice(0, 4));
        await untilProcesses(service, { busy: 1 });
        if (isStreamed) await until(() => connection.hasMore, 'the stream to begin');
        leave(connection);
        await expectGone(service, prompt.slice(0, 4));
      }

      const { id } = await askForReport(service, '/chat', { message: 'hello' });
      const turn = { message: 'hang', conversation_id: id, stream: isStreamed };
      using chatting = await send(service, '/chat', turn, 'chat');
      await untilProcesses(service, { busy: 1, live: 0 });
      leave(chatting);
      await expectGone(service, 'chat');
      expect((await service.get(`/chat/${id}`)).body.message_count).toBe(2);

      using running = await send(service, '/ask', { prompt: 'silent' }, 'running');
      await untilJobs(service, 1, 0);
      using queued = await send(service, '/ask', { prompt: 'hello', stream: isStreamed }, 'queued');
      await untilJobs(service, 1, 1);
      const left = performance.now();
      leave(queued);
      await untilJobs(service, 1, 0);
      expect(performance.now() - left).toBeLessThan(2500); // 100 ms on a quiet machine
      await expectCancelled(service, 'queued');
      leave(running);
      await expectGone(service, 'running');
      expect(await metric(service, 'jobs_total{operation="ask",outcome="cancelled"}')).toBe(4);
      expect(await metric(service, 'jobs_total{operation="chat",outcome="cancelled"}')).toBe(1);
      expect(service.stderr).toEqual([]);
    });
  });

  it('cancels a job whose program is being looked up or started', async () => {
    await using service = await startReportingModel(oneSlot, script('converses.pl', '--slow-start', '1.5'));
    using looking = await send(service, '/ask', { prompt: 'hello' }, 'looking');
    await untilJobs(service, 1, 0);
    leave(looking);
    await untilJobs(service, 0, 0);
    await expectCancelled(service, 'looking');
    await service.log('readiness_checked'); // the readiness check itself is shared, and continues
    await untilTreeGone(service);

    using starting = await send(service, '/ask', { prompt: 'hello' }, 'starting');
    await untilProcesses(service, { busy: 1 });
    leave(starting);
    await expectGone(service, 'starting');
  });

  it('cancels its pipelined requests too: the first job, and the others never start', async () => {
    await using service = await startReportingModel(oneSlot);
    using connection = await RawConnection.open(service.port);
    const ask = (name: string) => jsonPost('/ask', '{"prompt":"silent"}', [`X-Request-Id: ${name}`]);
    connection.send(Buffer.concat(['first', 'second', 'third'].map(ask)));
    await untilProcesses(service, { busy: 1 });
    leave(connection);
    await expectGone(service, 'first');
    await untilJobs(service, 0, 0);
    expect(await metric(service, 'jobs_total{operation="ask",outcome="cancelled"}')).toBe(1);
    expect(await service.jobProcesses()).toEqual([]);
  });
});

describe('A client that disconnects after the whole answer, but before the last event', () => {
  it('leaves a conversation with the whole turn or without it, and the next prompt of the model has the same history', async () => {
    await using service = await startReportingModel({ ...oneSlot, MODEL_API_MAX_OUTPUT_BYTES: '20000000' });
    const { id } = await askForReport(service, '/chat', { message: 'hello' });
    const bytes = 6_000_000;
    const turn = { message: `big ${bytes}`, conversation_id: id };
    const answer = await stream(service, '/chat', turn, { 'x-request-id': 'counted' });
    await answer.next('started');
    for (let read = 0; read < bytes; ) read += ((await answer.next('delta')).text as string).length;
    answer.leave();
    await untilJobs(service, 0, 0);
    // Without it, if the service notices the disconnect while it counts the tokens of the answer.
    const count = (await service.get(`/chat/${id}`)).body.message_count as number;
    expect([2, 4]).toContain(count);
    const next = await askForReport(service, '/chat', { message: 'two', conversation_id: id });
    const prompts = next.messages.filter(({ from }) => from === 'user').map(({ text }) => text);
    const asked = count === 2 ? ['hello', 'two'] : ['hello', turn.message, 'two'];
    expect([next.messageCount, prompts]).toEqual([count + 2, asked]);
  });
});
