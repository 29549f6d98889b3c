import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { KeepAliveClient } from '../../support/clients/keep-alive.js';
import { RawConnection, request } from '../../support/clients/raw-http.js';
import { Exposition } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { isAlive } from '../../support/processes/processes.js';
import { type Service, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';
import { lifeEvents } from '../../support/service/shutdown.js';

const connections = 10;
const minRequests = 3000;
/** Number of requests for each turn of a conversation, which starts a program. */
const turnEvery = 60;
/** Time limit for a machine that is busy with other work. */
const patienceMs = 60_000;

async function reload(service: Service, times: number): Promise<void> {
  service.process.kill('SIGHUP');
  const completed = () => lifeEvents(service).filter((event) => event === 'reload_complete').length;
  await until(() => completed() === times, 'the reload', patienceMs);
}

function untilGone(pids: readonly number[]): Promise<boolean> {
  return until(() => !pids.some(isAlive), 'the replaced workers to be gone');
}

/** Traffic over one connection until `isOver`: requests for the version, and some turns of one conversation. */
class Lane {
  turns = 0;
  requests = 0;
  readonly #client: KeepAliveClient;
  #conversationId: unknown;

  constructor(client: KeepAliveClient) {
    this.#client = client;
  }

  async run(isOver: () => boolean): Promise<void> {
    for (; !isOver(); this.requests++) {
      if (this.requests % turnEvery === 0) await this.#turn();
      else expect(await this.#client.get('/version')).toMatchObject({ status: 200, body: { name: 'prompt-relay' } });
    }
    const recalled = await this.#turn();
    expect(recalled.response).toContain('Ada');
  }

  async #turn() {
    const isFirst = this.turns === 0;
    const message = isFirst ? 'Hello, my name is Ada.' : 'What is my name?';
    const id = isFirst ? {} : { conversation_id: this.#conversationId };
    const answer = await this.#client.post('/chat', { message, ...id });
    this.turns++;
    expect(answer).toMatchObject({ status: 200, body: { message_count: 2 * this.turns } });
    this.#conversationId = answer.body.conversation_id;
    return answer.body;
  }
}

describe('SIGHUP', () => {
  it(
    'replaces every worker under traffic, twice, with no failed request and no lost conversation',
    async () => {
      await using service = await startService({
        env: { ...twoWorkers, MODEL_API_MAX_CONCURRENT: '2', MODEL_API_QUEUE_TIMEOUT_MS: String(patienceMs) },
      });
      const first = await service.workers();
      const lanes: Lane[] = [];
      const sent = () => lanes.reduce((sum, { requests }) => sum + requests, 0);
      {
        using client = new KeepAliveClient(service.port, connections);
        let isOver = false;
        for (let count = 0; count < connections; count++) lanes.push(new Lane(client));
        const traffic = Promise.all(lanes.map((lane) => lane.run(() => isOver)));
        const reloads = (async () => {
          await until(() => sent() >= minRequests / 4, 'traffic', patienceMs);
          await reload(service, 1);
          const second = await service.workers();
          await until(() => sent() >= minRequests / 2, 'more traffic', patienceMs);
          await reload(service, 2);
          await until(() => sent() >= minRequests, 'enough traffic', patienceMs);
          isOver = true;
          return second;
        })();
        const [second] = await Promise.all([Promise.race([reloads, traffic.then(() => reloads)]), traffic]);
        const third = await service.workers();
        expect(new Set([...first, ...second, ...third]).size).toBe(6);
        await untilGone([...first, ...second]);
        expect(await service.workers()).toEqual(third);
      }
      expect(sent()).toBeGreaterThanOrEqual(minRequests);
      expect(lanes.filter(({ turns }) => turns < 3)).toEqual([]);
      expect(lifeEvents(service)).toEqual(['reload_start', 'reload_complete', 'reload_start', 'reload_complete']);
      expect((await service.get('/metrics')).text).toMatch(/^model_api_worker_restarts_total\{cause="reload"\} 4$/m);
    },
    3 * patienceMs,
  );

  it('does not affect running and waiting jobs, and their workers stay until these are answered', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { ...twoWorkers, MODEL_API_MAX_CONCURRENT: '2' });
    const old = await service.workers();
    const prompts = ['first', 'second', 'third', 'fourth'];
    const answers = prompts.map((prompt) => service.post('/ask', { prompt }));
    await untilJobs(service, 2, 2);
    await until(async () => (await service.jobProcesses()).length === 2, 'both programs to run');
    const running = await service.jobProcesses();

    await reload(service, 1);
    expect(await service.jobProcesses()).toEqual(expect.arrayContaining(running));
    await untilJobs(service, 2, 2);
    expect((await service.workers()).filter((pid) => old.includes(pid))).toEqual([]);
    await gate.open();
    const said = (await Promise.all(answers)).map(({ status, body }) => [status, body.response]);
    expect(said).toEqual(prompts.map((prompt) => [200, prompt]));
    await untilGone(old);
    expect(service.logs.filter(({ event }) => event === 'worker_gone')).toEqual([]);
  });

  it('loses none of the counts of the replaced workers', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, twoWorkers);
    const old = await service.workers();
    const answers = ['first', 'second'].map((prompt) => service.post('/ask', { prompt }, { connection: 'close' }));
    await untilJobs(service, 2, 0);
    await reload(service, 1);
    await gate.open();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    await untilGone(old);
    await until(async () => (await statesOf(service)).length === 2, 'the primary to notice');
    const scrape = new Exposition((await service.get('/metrics')).text);
    expect(scrape.value('http_requests_total{method="POST",route="/ask",code="200"}')).toBe(2);
    expect(scrape.value('http_request_duration_seconds_count{method="POST",route="/ask"}')).toBe(2);
  });

  it('answers one last request on an idle connection, and then closes it', async () => {
    await using service = await startService({ env: twoWorkers });
    const idle = await Promise.all(Array.from({ length: 4 }, () => RawConnection.open(service.port)));
    for (const connection of idle) {
      connection.send(request('GET /version'));
      expect((await connection.answer()).headers.connection).toBe('keep-alive');
    }
    await reload(service, 1);
    for (const connection of idle) {
      connection.send(request('GET /version'));
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { connection: 'close' } });
      await connection.closed();
      connection[Symbol.dispose]();
    }
  });

  it('interrupted by a SIGTERM ends cleanly', async () => {
    await using service = await startService({ env: twoWorkers });
    const old = await service.workers();
    service.process.kill('SIGHUP');
    await service.log('reload_start');
    service.process.kill('SIGTERM');
    expect(await service.exited).toBe(0);
    expect(lifeEvents(service)).toEqual(['reload_start', 'shutdown_start', 'shutdown_complete']);
    expect(service.logs.filter(({ level }) => level === 'error')).toEqual([]);
    expect(service.stderr).toEqual([]);
    expect(old.filter(isAlive)).toEqual([]);
  });

  it('leaves one worker per seat even if one dies while its successor starts', async () => {
    await using service = await startService({ env: twoWorkers });
    const [doomed] = await service.workers();
    service.process.kill('SIGHUP');
    await service.log('reload_start');
    process.kill(Number(doomed), 'SIGKILL');
    await service.log('reload_complete');
    await until(async () => (await statesOf(service)).join() === 'ready,ready', 'two workers, both ready');
    expect(await service.workers()).not.toContain(doomed);
  });
});

async function statesOf(service: Service): Promise<string[]> {
  const { workers } = (await service.get('/health')).body.observability as { workers: { state: string }[] };
  return workers.map(({ state }) => state);
}
