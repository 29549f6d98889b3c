import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { filesBelow, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { exchange, jsonPost } from '../../support/clients/raw-http.js';
import { root } from '../../support/documents/sources.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

const canary = `canary-${Math.random().toString(36).slice(2)}`;

/** Sends a prompt in every way: answered, refused, failed, cut, and repeated by the program on stderr. */
async function sendEverywhere(service: Service): Promise<void> {
  const ways = ['echo', 'exit-half:3', 'signal-half:SEGV', 'signal-half:ABRT', 'hang-half', 'one-line'];
  for (const model of ways) {
    await service.post('/ask', { prompt: canary, system: canary, model });
    await service.post('/chat', { message: canary, stream: true, model });
  }
  await exchange(service.port, jsonPost('/ask', `{"prompt":"${canary}"`));
  await exchange(service.port, jsonPost('/ask', `{"prompt":"${canary}","${canary}":1}`));
  await exchange(service.port, jsonPost(`/ask?${canary}`, `{"prompt":7}`));
  await exchange(service.port, jsonPost('/chat', `{"message":"a","conversation_id":"${canary}"}`));
}

describe('A prompt', () => {
  it('is in no log record, no metric, no health history and no file, however its job ends', async () => {
    const env = {
      MODEL_API_DEFAULT_MODEL: 'echo',
      MODEL_API_TIMEOUT: '1',
      MODEL_API_LOG_LEVEL: 'debug',
      MODEL_API_KILL_GRACE_MS: '100',
    };
    await using service = await startWithProgram(script('misbehaves.pl', '{model}'), env);
    await sendEverywhere(service);
    await untilTreeGone(service, 15_000);
    await untilJobs(service, 0, 0);
    const told = await Promise.all(
      ['/metrics', '/health', '/health/history', '/version', '/models'].map((path) => service.get(path)),
    );
    for (const { text } of told) expect(text).not.toContain(canary);
    expect(JSON.stringify(service.logs)).not.toContain(canary);
    expect(service.stderr.join()).not.toContain(canary);
    for (const file of await filesBelow(service.home)) expect(await readFile(file, 'latin1')).not.toContain(canary);
  });
});

describe('A secret that a program writes to stderr', () => {
  const secrets = {
    'in MODEL_API_CLI_ENV': 'vendor+secret/of=the-operator',
    'the credential': 'sk-ant-oat01-credential-of-the-account',
    MODEL_API_KEY: 'the-first-key-of-the-service',
    'a named key': 'pr_bmFtZWRrZXlvZnRoZXNlcnZpY2U',
  };

  it.each([0, 50, 110])('is in no log record and no answer, before %i lines of text', async (lines) => {
    await using folder = await temporaryFolder();
    const [told, keys] = [join(folder.path, 'told'), join(folder.path, 'keys')];
    await writeFile(told, Object.values(secrets).join('\n'));
    const digest = createHash('sha256').update(secrets['a named key']).digest('hex');
    await writeFile(keys, `app:sha256:${digest}\n`, { mode: 0o600 });
    await using service = await startWithProgram(script('tells-secrets.pl', told), {
      VENDOR_KEY: secrets['in MODEL_API_CLI_ENV'],
      MODEL_API_CLI_ENV: 'VENDOR_KEY',
      MODEL_CODE_OAUTH_TOKEN: secrets['the credential'],
      MODEL_API_KEY: secrets.MODEL_API_KEY,
      MODEL_API_KEYS_FILE: keys,
      MODEL_API_LOG_LEVEL: 'debug',
      MODEL_API_EXPOSE_STDERR: 'true',
    });
    const { body } = await service.post('/ask', { prompt: `${lines} lines` }, { 'x-api-key': secrets.MODEL_API_KEY });
    expect(body).toMatchObject({ error: 'cli_error', reason: 'crashed' });
    const { stderr } = await service.log('cli_failed');
    expect(stderr).toMatch(lines === 0 ? /key=\[VENDOR_KEY\], .*\[MODEL_CODE_OAUTH_TOKEN\].*\[API key\]/s : /x{70}/);
    const said = `${JSON.stringify(service.logs)}${JSON.stringify(body)}`;
    for (const [name, secret] of Object.entries(secrets)) {
      for (const part of [secret, encodeURIComponent(secret), secret.slice(0, secret.length / 2), secret.slice(8)]) {
        expect({ name, isTold: said.includes(part) }).toEqual({ name, isTold: false });
      }
    }
  });
});

describe('A core file', () => {
  const canDump = spawnSync('sh', ['-c', 'ulimit -c unlimited']).status === 0;
  const names = async (folder: string) =>
    (await filesBelow(folder)).filter((path) => basename(path).startsWith('core'));

  (canDump ? it : it.skip)('of a crashing program is deleted with the folder of its job', async () => {
    await using folder = await temporaryFolder();
    const crashes = `sh -c 'ulimit -c unlimited; read word; kill -SEGV $$'`;
    await using service = await startWithProgram(crashes, { TMPDIR: folder.path }, { folder: folder.path });
    const { body } = await service.post('/ask', { prompt: `${canary}\n` });
    expect(body).toMatchObject({ error: 'cli_error' });
    await untilTreeGone(service);
    await until(async () => (await names(folder.path)).length === 0, 'no core file to be left');
  });

  it('is never written under systemd: every unit that starts the service or its programs forbids it', async () => {
    const units = (await readdir(join(root, 'deploy', 'systemd'))).filter((name) => name.endsWith('.service'));
    expect(units.length).toBeGreaterThan(0);
    for (const unit of units)
      expect(await readFile(join(root, 'deploy', 'systemd', unit), 'utf8')).toMatch(/^LimitCORE=0$/m);
  });
});
