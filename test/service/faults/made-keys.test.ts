import { mkdir, readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { type Service, startService } from '../../support/service/service.js';

const admin = { 'x-api-key': 'a-key-of-some-length-1234' };

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

function start(env: Record<string, string> = {}): Promise<Service> {
  const state = { MODEL_API_STATE_FOLDER: join(folder.path, 'state'), MODEL_API_KEY: admin['x-api-key'] };
  return startService({ env: { ...state, ...env } });
}

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
