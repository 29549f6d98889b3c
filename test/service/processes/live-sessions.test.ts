import {
  askForReport,
  messageTexts,
  processCounts,
  startReportingModel,
  untilProcesses,
} from '../../support/agents/reporting-model.js';
import { until } from '../../support/basics/until.js';
import { stream } from '../../support/clients/event-stream.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { isAlive } from '../../support/processes/processes.js';
import { type Service, script, startService } from '../../support/service/service.js';

const live = { MODEL_API_LIVE_SESSIONS: '2' };

function say(service: Service, message: string, id?: string, more: object = {}) {
  return askForReport(service, '/chat', { message, ...(id && { conversation_id: id }), ...more });
}

/** Kills a process. Resolves when it is dead, which its parent may not have noticed yet. */
async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await until(() => !isAlive(pid), 'the process to die');
}

describe('A later turn of a conversation', () => {
  it('is answered by the same process, which receives nothing twice', async () => {
    await using service = await startReportingModel(live);
    const first = await say(service, 'one');
    const second = await say(service, 'two', first.id);
    const third = await say(service, 'three', first.id);
    expect([second.pid, third.pid]).toEqual([first.pid, first.pid]);
    expect(third.messages).toEqual(['one', 'two', 'three'].map((text) => ({ from: 'user', text })));
    expect(third.messageCount).toBe(6);
    expect(await service.jobProcesses()).toEqual([first.pid]);
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(2);
    expect(await metric(service, 'live_session_total{result="replay"}')).toBe(0);
  });

  it('is replayed to a new process, with separate roles, if the old one was killed', async () => {
    await using service = await startReportingModel({ ...live, MODEL_API_STANDBY: '1' });
    const first = await say(service, 'one', undefined, { system: 'Be brief.' });
    await kill(first.pid);
    const second = await say(service, 'two', first.id);
    expect(second.pid).not.toBe(first.pid);
    expect(second.messages.map(({ from }) => from)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(messageTexts(second)[1]).toBe('one');
    expect(JSON.parse(messageTexts(second)[2] as string)).toMatchObject({ pid: first.pid });
    expect(second.messageCount).toBe(4);
    expect(await metric(service, 'live_session_total{result="replay"}')).toBe(1);
    expect((await say(service, 'three', first.id)).pid).toBe(second.pid);
  });

  it('is the same, live or replayed', async () => {
    await using service = await startService({ env: live });
    const talk = ['My name is Ada.', 'I like engines.', 'What is my name?', 'What did I say first?'];
    const converse = async (afterEach: () => Promise<unknown>) => {
      const bodies: Record<string, unknown>[] = [];
      for (const message of talk) {
        const id = bodies[0]?.conversation_id;
        const { status, body } = await service.post('/chat', { message, ...(id ? { conversation_id: id } : {}) });
        expect(status).toBe(200);
        bodies.push(body);
        await afterEach();
      }
      return bodies;
    };
    const alive = await converse(async () => {});
    const replayed = await converse(async () => {
      for (const pid of await service.jobProcesses()) await kill(pid);
    });
    const visible = ({ response, message_count, tokens_used, usage, ...rest }: Record<string, unknown>) => {
      return { response, message_count, tokens_used, usage, fields: Object.keys(rest) };
    };
    expect(replayed.map(visible)).toEqual(alive.map(visible));
    expect(alive[2]?.response).toContain('Ada');
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(3);
  });

  it('moves to another process for another model, and the conversation continues', async () => {
    await using service = await startReportingModel(live);
    const first = await say(service, 'one');
    const second = await say(service, 'two', first.id, { model: 'echo' });
    expect(second.pid).not.toBe(first.pid);
    expect(second.messages.map(({ from }) => from)).toEqual(['user', 'assistant', 'user']);
    await until(() => !isAlive(first.pid), 'the old process to be ended');
  });

  it('gets a new process if live sessions are disabled', async () => {
    await using service = await startReportingModel();
    const first = await say(service, 'one');
    const second = await say(service, 'two', first.id);
    expect(second.pid).not.toBe(first.pid);
    await untilTreeGone(service);
  });
});

describe('A turn without an answer', () => {
  it.each(['plain', 'streamed'])(
    'is cancelled in the middle and leaves the conversation unchanged: %s',
    async (kind) => {
      await using service = await startReportingModel(live);
      const first = await say(service, 'one');
      const turn = { message: 'hang', conversation_id: first.id };
      if (kind === 'streamed') {
        const answer = await stream(service, '/chat', turn);
        await answer.next('started');
        await answer.next('delta');
        answer.leave();
      } else {
        const client = new AbortController();
        const left = service.post('/chat', turn, {}, client.signal).catch(() => 'left');
        await untilProcesses(service, { busy: 1 });
        client.abort();
        expect(await left).toBe('left');
      }
      await untilTreeGone(service);
      await untilJobs(service, 0, 0);
      expect((await service.get(`/chat/${first.id}`)).body.message_count).toBe(2);
      const next = await say(service, 'two', first.id);
      expect(next.pid).not.toBe(first.pid);
      expect(messageTexts(next).filter((text) => !text.startsWith('{'))).toEqual(['one', 'two']);
      expect(next.messageCount).toBe(4);
    },
  );

  it.each([
    ['die', 500],
    ['auth', 500],
    ['silent', 504],
  ])('fails and leaves the conversation unchanged: %s', async (message, status) => {
    await using service = await startReportingModel({ ...live, MODEL_API_TIMEOUT: '4' });
    const first = await say(service, 'one');
    expect((await service.post('/chat', { message, conversation_id: first.id })).status).toBe(status);
    await untilTreeGone(service);
    const next = await say(service, 'two', first.id);
    expect(messageTexts(next).filter((text) => !text.startsWith('{'))).toEqual(['one', 'two']);
    expect(next.messageCount).toBe(4);
  });
});

describe('A program that is slow to exit', () => {
  it.each([0, 2])(
    'never exceeds the process limit of slots and sessions, with %s sessions: a slot waits',
    async (sessions) => {
      const env = { MODEL_API_LIVE_SESSIONS: String(sessions), MODEL_API_MAX_CONCURRENT: '1' };
      await using service = await startReportingModel(env, script('converses.pl', '--stubborn'));
      for (let count = 0; count < 5; count++) {
        const { id } = await say(service, 'one');
        const { live, busy, stopping } = await processCounts(service);
        expect(live + busy + stopping).toBeLessThanOrEqual(sessions + 1);
        if (count === 3) await say(service, 'two', id, { model: 'echo' });
      }
      await untilJobs(service, 0, 0);
      expect(await processCounts(service)).toMatchObject({ live: sessions, busy: 0, stopping: 0 });
    },
  );
});

describe('A live session ends', () => {
  it('with its conversation', async () => {
    await using service = await startReportingModel(live);
    const { id } = await say(service, 'one');
    await untilProcesses(service, { live: 1 });
    await service.fetch(`/chat/${id}`, { method: 'DELETE' });
    await untilTreeGone(service);
    await untilProcesses(service, { live: 0, stopping: 0 });
  });

  it('with its conversation if that is deleted during a turn, which still answers', async () => {
    await using service = await startReportingModel(live);
    const { id } = await say(service, 'one');
    await using answer = await stream(service, '/chat', { message: 'drip 10 50', conversation_id: id });
    await answer.next('started');
    await answer.next('delta');
    await service.fetch(`/chat/${id}`, { method: 'DELETE' });
    expect((await answer.remainingEvents()).at(-1)).toMatchObject({
      event: 'done',
      data: { response: '1 2 3 4 5 6 7 8 9 10 ' },
    });
    await untilTreeGone(service);
    await untilProcesses(service, { live: 0, busy: 0, stopping: 0 });
    expect((await service.post('/chat', { message: 'two', conversation_id: id })).status).toBe(400);
  });

  it('when it is idle for too long, while the conversation remains', async () => {
    await using service = await startReportingModel({ ...live, MODEL_API_SESSION_IDLE_SECONDS: '1' });
    const first = await say(service, 'one');
    await until(() => !isAlive(first.pid), 'the idle process to be ended');
    await untilProcesses(service, { live: 0, stopping: 0 });
    expect((await say(service, 'two', first.id)).messageCount).toBe(4);
  });

  it('when there are too many: the least recently used ends', async () => {
    await using service = await startReportingModel(live);
    const [a, b] = [await say(service, 'a'), await say(service, 'b')];
    await say(service, 'a again', a.id);
    const c = await say(service, 'c');
    await until(() => !isAlive(b.pid), 'the process not used for longest to be ended');
    await untilProcesses(service, { live: 2, stopping: 0 });
    expect((await service.jobProcesses()).toSorted()).toEqual([a.pid, c.pid].toSorted());
    expect(messageTexts(await say(service, 'b again', b.id)).filter((text) => text.startsWith('b'))).toEqual([
      'b',
      'b again',
    ]);
  });

  it('when its conversation is evicted or expires', async () => {
    await using service = await startReportingModel({
      ...live,
      MODEL_API_MAX_CONVERSATIONS: '1',
      MODEL_API_CONVERSATION_TTL_SECONDS: '2',
    });
    const evicted = await say(service, 'one');
    const expired = await say(service, 'another');
    await until(() => !isAlive(evicted.pid), 'the process of the evicted one to be ended');
    expect(isAlive(expired.pid)).toBe(true);
    await until(() => !isAlive(expired.pid), 'the process of the expired one to be ended');
  });
});
