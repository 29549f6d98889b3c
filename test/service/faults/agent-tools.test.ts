import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { ToolClient } from '../../support/clients/tool-client.js';
import { isAlive, killIfAlive } from '../../support/processes/processes.js';
import { fixture, type Service, startService } from '../../support/service/service.js';

function start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const agent = { MODEL_API_CLI: 'gemini', MODEL_API_CLI_COMMAND: fixture('calling-agent.js') };
  return startService({ env: { ...agent, MODEL_API_LIVE_SESSIONS: '4', ...env } });
}

const clientOf = (service: Service, key?: string) => new ToolClient(service, key, { model: 'flash' });

async function standbyIn(service: Service): Promise<number | undefined> {
  const { body } = await service.get('/health');
  return (body as { observability: { cli_processes: Record<string, number> } }).observability.cli_processes.standby;
}

describe('A loop of client tools with an agent', () => {
  it('never reaches the process of another client that sent the same messages with the same ids', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const lines = ['ada', 'bob'].map((name) => `${name}:sha256:${digestOf(`key-of-the-client-${name}`)}\n`);
    await writeFile(path, lines.join(''), { mode: 0o600 });
    await using service = await start({ MODEL_API_KEYS_FILE: path });
    const [ada, bob] = ['ada', 'bob'].map((name) => clientOf(service, `key-of-the-client-${name}`));
    if (ada === undefined || bob === undefined) throw new Error('there are two clients');
    const { calls } = await ada.say('Note.');
    expect(calls).toHaveLength(1);
    bob.messages.push(...ada.messages);
    expect(await bob.answer(() => 'the result of Bob')).toMatchObject({
      text: 'heard the result of Bob',
      session: 'replay',
    });
    expect(await ada.answer(() => 'the result of Ada')).toMatchObject({
      text: 'heard the result of Ada',
      session: 'live',
    });
  });

  it.each(['the process that waits', 'every process'])(
    'loses no result if %s is killed while another process is on standby',
    async (killed) => {
      await using service = await start({ MODEL_API_STANDBY: '1' });
      for (let round = 0; round < 8; round++) {
        const client = clientOf(service);
        await until(async () => (await standbyIn(service)) === 1, 'a process on standby');
        const before = await service.jobProcesses();
        await client.say(`Note ${round}.`);
        await until(async () => (await standbyIn(service)) === 1, 'another one on standby');
        const all = await service.jobProcesses();
        const victims = killed === 'every process' ? all : before;
        for (const pid of victims) killIfAlive(pid);
        await until(() => !victims.some(isAlive), 'the kernel to have ended them');
        const { status, text } = await client.answer(() => 'the result of Ann');
        expect([status, text]).toEqual([200, 'heard the result of Ann']);
      }
    },
    60_000,
  );
});
