import { until } from '../../support/basics/until.js';
import { isAlive } from '../../support/processes/processes.js';
import { fixture, type Service, startWithProgram } from '../../support/service/service.js';

interface Told {
  readonly pid: number;
  readonly history: number;
  readonly prompt: string;
}

/** Sends a message in a conversation. Returns the program's answer and the ID of the conversation. */
async function chat(service: Service, message: string, id?: string): Promise<{ told: Told; id: string }> {
  const { status, body } = await service.post('/chat', { message, ...(id && { conversation_id: id }) });
  expect(status).toBe(200);
  return { told: JSON.parse(body.response as string) as Told, id: body.conversation_id as string };
}

function start(): Promise<Service> {
  const env = { MODEL_API_CLI: 'claude', MODEL_API_LIVE_SESSIONS: '4' };
  return startWithProgram(fixture('late-lines.js'), env);
}

describe('A claude process that prints extra lines', () => {
  it('answers turn after turn in one process if it prints none', async () => {
    await using service = await start();
    const first = await chat(service, 'one');
    const second = await chat(service, 'two', first.id);
    expect(second.told).toEqual({ pid: first.told.pid, history: 0, prompt: 'two' });
  });

  it.each(['late assistant', 'late result', 'two results', 'late at once'])(
    'is ended, and the next turn gets a fresh process with the history: %s',
    async (what) => {
      await using service = await start();
      const first = await chat(service, what);
      expect(first.told.prompt).toBe(what);
      await until(() => !isAlive(first.told.pid), 'the process to be ended');
      const second = await chat(service, 'two', first.id);
      expect(second.told).toMatchObject({ history: 2, prompt: 'two' });
      expect(second.told.pid).not.toBe(first.told.pid);
      const third = await chat(service, 'three', first.id);
      expect(third.told).toEqual({ pid: second.told.pid, history: 2, prompt: 'three' });
    },
  );

  it.each(['next: assistant', 'next: result'])(
    'never mixes an old answer into the next one, and is ended afterwards: %s',
    async (what) => {
      await using service = await start();
      const first = await chat(service, what);
      const second = await chat(service, 'two', first.id);
      expect(second.told).toEqual({ pid: first.told.pid, history: 0, prompt: 'two' });
      const third = await chat(service, 'three', first.id);
      expect(third.told).toMatchObject({ history: 4, prompt: 'three' });
      expect(third.told.pid).not.toBe(first.told.pid);
    },
  );
});
