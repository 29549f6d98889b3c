import { mkdir, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { readMadeKeys } from '../../../src/features/keys-api/records.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { keyOptions } from '../../support/basics/key-options.js';
import { randomNumbers } from '../../support/basics/random.js';
import { type Service, startService } from '../../support/service/service.js';

const admin = { 'x-api-key': 'a-key-of-some-length-1234' };
const rounds = 6;

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

function start(env: Record<string, string> = {}): Promise<Service> {
  const state = { MODEL_API_STATE_FOLDER: join(folder.path, 'state'), MODEL_API_KEY: admin['x-api-key'] };
  return startService({ env: { ...state, ...env } });
}

describe('kill -9 while keys are written', () => {
  it('loses no key whose request was answered, and leaves a whole file', async () => {
    const random = randomNumbers(43);
    const answered = new Map<string, string>();
    for (let round = 0; round < rounds; round++) {
      const service = await start();
      const known = (await service.get('/keys', admin)).body.keys as { name: string }[];
      expect(known.map(({ name }) => name)).toEqual(expect.arrayContaining([...answered.keys()]));
      for (const [name, key] of [...answered].slice(-3))
        expect([name, (await service.get('/usage', { 'x-api-key': key })).status]).toEqual([name, 200]);
      let left = 3 + Math.floor(random() * 12);
      const writer = async (lane: number) => {
        for (let index = 0; ; index++) {
          const name = `k${round}-${lane}-${index}`;
          const made = await service.post('/keys', { name }, admin).catch(() => null);
          if (made?.status !== 201) return;
          answered.set(name, String(made.body.key));
          if (--left === 0) service.process.kill('SIGKILL'); // while the keys of the other lanes are written
        }
      };
      const writers = [0, 1, 2, 3].map(writer);
      await Promise.all(writers);
      await service.stop();
      const stored = readMadeKeys(await readFile(join(folder.path, 'state', 'made-keys.json'), 'utf8'), keyOptions);
      expect(stored.map(({ name }) => name)).toEqual(expect.arrayContaining([...answered.keys()]));
    }
    expect(answered.size).toBeGreaterThan(rounds);
  });
});

describe('An audit file that cannot be written', () => {
  it('refuses each act of an administrator, and nothing else', async () => {
    await symlink('/dev/full', join(folder.path, 'audit'));
    await using service = await start({ MODEL_API_AUDIT_FILE: join(folder.path, 'audit') });
    const refused = { status: 503, body: { error: 'store_unavailable' } };
    expect(await service.post('/keys', { name: 'lab' }, admin)).toMatchObject(refused);
    expect(await service.post('/health/recheck', {}, admin)).toMatchObject(refused);
    expect(await service.post('/store/purge', { client: 'key bob' }, admin)).toMatchObject(refused);
    expect((await service.get('/keys', admin)).body.keys).toHaveLength(1);
    await expect(readdir(join(folder.path, 'state'))).rejects.toMatchObject({ code: 'ENOENT' });
    const workers = await service.workers();
    process.kill(service.pid, 'SIGHUP');
    await service.log('audit_failed');
    expect((await service.post('/ask', { prompt: 'Hello' }, admin)).status).toBe(200);
    expect(await service.workers()).toEqual(workers);
    await rm(join(folder.path, 'audit'));
    expect((await service.post('/keys', { name: 'lab' }, admin)).status).toBe(201);
  });
});

describe('A state folder that cannot be used', () => {
  it('refuses new keys, and the service goes on', async () => {
    await using service = await start({ MODEL_API_STATE_FOLDER: '/proc/state' });
    expect(await service.post('/keys', { name: 'lab' }, admin)).toMatchObject({ status: 503 });
    expect((await service.post('/ask', { prompt: 'Hello' }, admin)).status).toBe(200);
  });

  it('refuses only the keys in it if its file is damaged, and says so', async () => {
    const env = { MODEL_API_STATE_FOLDER: folder.path };
    await mkdir(join(folder.path, 'made-keys.json'));
    await using service = await start(env);
    expect(await service.log('keys_rejected')).toMatchObject({ error: expect.stringContaining('cannot be read') });
    expect((await service.post('/ask', { prompt: 'Hello' }, admin)).status).toBe(200);
    expect((await service.get('/health', admin)).body).toMatchObject({
      reasons: [{ part: 'keys', name: 'made_keys' }],
    });
    expect(await service.post('/keys', { name: 'lab' }, admin)).toMatchObject({ status: 503 });
    await rm(join(folder.path, 'made-keys.json'), { recursive: true });
    expect(await service.post('/keys', { name: 'lab' }, admin)).toMatchObject({ status: 201 });
    expect((await service.get('/health', admin)).body.status).toBe('ok');
  });
});
