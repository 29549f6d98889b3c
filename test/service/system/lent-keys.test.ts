import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { runCommand } from '../../support/clients/command.js';
import { headersOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const operator = headersOf('operator');

let folder: TemporaryFolder;
let named: NamedKeys;
let service: Service;
let env: Record<string, string>;

beforeAll(async () => {
  folder = await temporaryFolder();
  named = await writeNamedKeys();
  const audit = { MODEL_API_AUDIT_FILE: join(folder.path, 'audit.jsonl') };
  env = { ...twoWorkers, ...named.env, MODEL_API_STATE_FOLDER: folder.path, ...audit };
  service = await startService({ env });
});
afterAll(async () => {
  await service.stop();
  await named[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const ask = (key: string) => service.post('/ask', { prompt: 'Hello' }, { 'x-api-key': key });
const lend = (args: readonly string[], key: string) =>
  runCommand(['keys', 'lend', ...args], { env: { MODEL_API_URL: service.url, MODEL_API_KEY: key } });

describe('A key that prompt-relay lends', () => {
  it('works at once and after a restart, counts for its lender, and can end itself', async () => {
    const { 'x-api-key': own = '' } = operator as Record<string, string>;
    const { code, stdout } = await lend(['--for', '4h'], own);
    const key = stdout.trim();
    expect([code, /^pr_[\w-]+$/.test(key)]).toEqual([0, true]);
    expect((await ask(key)).status).toBe(200);
    await service.stop();
    service = await startService({ env });
    expect((await ask(key)).status).toBe(200);
    const { body } = await service.get('/usage', operator);
    expect((body.usage as { client: string }[]).map(({ client }) => client)).toEqual(['operator']);
    for (const path of ['/setup', '/audit'])
      expect([path, (await service.get(path, { 'x-api-key': key })).status]).toEqual([path, 403]);
    expect((await service.post('/keys', { name: 'more' }, { 'x-api-key': key })).status).toBe(403);
    expect((await lend(['--for', '1h'], key)).code).not.toBe(0);
    expect((await lend(['--list'], own)).stdout).toContain('operator');
    expect((await lend(['--end'], key)).code).toBe(0);
    expect((await ask(key)).status).toBe(401);
    const audit = await readFile(join(folder.path, 'audit.jsonl'), 'utf8');
    expect([audit.includes('key_lent'), audit.includes(key), JSON.stringify(service.logs).includes(key)]).toEqual([
      ...[true, false, false],
    ]);
  });
});
