import { appendFile } from 'node:fs/promises';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { runCommand } from '../../support/clients/command.js';
import { headersOf, keyOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const operator = headersOf('operator');

let folder: TemporaryFolder;
let named: NamedKeys;
let service: Service;
let env: Record<string, string>;

beforeAll(async () => {
  folder = await temporaryFolder();
  named = await writeNamedKeys();
  await appendFile(named.env.MODEL_API_KEYS_FILE ?? '', '@bio101 tokens=1000000/day\n');
  env = { ...twoWorkers, ...named.env, MODEL_API_STATE_FOLDER: folder.path };
  service = await startService({ env });
});
afterAll(async () => {
  await service.stop();
  await named[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const reserve = (args: readonly string[], holder = 'operator') =>
  runCommand(['reserve', ...args], { env: { MODEL_API_URL: service.url, MODEL_API_KEY: keyOf(holder) } });
const list = async () => (await service.get('/reservations', headersOf('alice'))).body.reservations as { id: string }[];

describe('Reserved slots', () => {
  it('survive a kill, are seen by all, and are made and cancelled only by administrators', async () => {
    const begins = new Date(Date.now() + 1000).toISOString().slice(0, 16);
    const order = ['@bio101', 'slots=2', `${begins}/2h`];
    expect((await reserve(order, 'alice')).code).not.toBe(0);
    const { code, stdout } = await reserve([...order, '--json']);
    expect(code).toBe(0);
    const { id, is_stored } = JSON.parse(stdout) as { id: string; is_stored: boolean };
    expect(is_stored).toBe(true);
    service.process.kill('SIGKILL');
    await service.stop();
    service = await startService({ env });
    expect(await list()).toMatchObject([{ id, group: 'bio101', slots: 2, is_active: true }]);
    expect((await service.get('/metrics', operator)).text).toContain('model_api_reserved_slots{group="bio101"} 2');
    expect((await service.post('/ask', { prompt: 'Hello' }, headersOf('alice'))).status).toBe(200); // unused slots
    expect((await service.delete(`/reservations/${id}`, headersOf('alice'))).status).toBe(403);
    expect((await reserve(['cancel', id])).code).toBe(0);
    expect(await list()).toEqual([]);
  });

  it('lose no answered request, and no file, by a kill while they are stored', async () => {
    const answered: string[] = [];
    const writer = async (lane: number) => {
      for (let index = 0; index < 20; index++) {
        const begins_at = new Date(Date.now() + (lane * 20 + index + 1) * 3_600_000).toISOString();
        const order = { group: 'bio101', slots: 1, begins_at, seconds: 60 };
        const made = await service.post('/reservations', order, operator).catch(() => null);
        if (made?.status !== 201) return;
        answered.push(String(made.body.id));
        if (answered.length === 7) service.process.kill('SIGKILL');
      }
    };
    await Promise.all([0, 1, 2].map(writer));
    await service.stop();
    service = await startService({ env });
    expect(answered.length).toBeGreaterThanOrEqual(7);
    expect((await list()).map(({ id }) => id)).toEqual(expect.arrayContaining(answered));
  });
});
