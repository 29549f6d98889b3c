import { readFileSync } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { unfencedCapabilities } from '../../../src/features/accounts/capabilities.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { runCommand } from '../../support/clients/command.js';
import { failingService, type Service, startService, startWithProgram } from '../../support/service/service.js';

function statusOverSocket(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath, path: '/version', headers: { host: 'localhost' } }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode));
    });
    sent.once('error', reject).end();
  });
}

const typingErrors = { MODEL_API_TIMEOUTS: '5', MODEL_API_MAX_CONCURENT: '5', MODEL_API_ZZZZZZZZZZ: '5' };

/** Finds neither claude nor setpriv. */
const withoutPrograms = { PATH: '/nonexistent', MODEL_API_CLI: 'auto', MODEL_API_CGROUP: 'off', ...typingErrors };

/** Has a Unix socket, and a warning of each kind. */
const relaxed = shared(async () => {
  const folder = await temporaryFolder();
  const socketPath = join(folder.path, 'relay.sock');
  const service = await startService({ env: { ...withoutPrograms, MODEL_API_SOCKET: socketPath } });
  return {
    service,
    socketPath,
    async [Symbol.asyncDispose]() {
      await service.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
});

/** Whether programs of this process get capabilities that weaken the fence around logins. */
const hasCapabilities =
  unfencedCapabilities(readFileSync('/proc/self/status', 'utf8'), process.getuid?.() === 0).length > 0;

describe('A service that cannot start', () => {
  it('refuses accounts as root with capabilities, unless the operator allows them', async () => {
    if (!hasCapabilities)
      return void process.stderr.write('Skipped, because this user is not root: accounts as root.\n');
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'accounts');
    await writeFile(file, '', { mode: 0o600 });
    const env = { MODEL_API_ACCOUNTS_FILE: file, MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat' };
    const refused = await failingService({ ...env, MODEL_API_ACCOUNTS_AS_ROOT: 'false' });
    expect([refused.code, refused.stderr.join('\n')]).toEqual([
      78,
      expect.stringMatching(
        /MODEL_API_ACCOUNTS_FILE: the service runs as root with .*CAP_SYS_ADMIN.* MODEL_API_ACCOUNTS_AS_ROOT=true/,
      ),
    ]);
    await using allowed = await startService({ env: { ...env, MODEL_API_ACCOUNTS_AS_ROOT: 'true' } });
    expect((await allowed.get('/health')).status).toBe(200);
  });

  it('lists all configuration faults at once, on stderr and in its log, and exits with 78', async () => {
    const service = await failingService({
      MODEL_API_PORT: 'abc',
      MODEL_API_MAX_QUEUE: '1e3',
      MODEL_API_MAX_CONCURRENT: '',
      MODEL_API_WORKERS: '0x2',
      MODEL_API_CLI: 'gpt',
      MODEL_API_KEY: '',
      MODEL_API_LOG_LEVEL: 'loud',
    });
    expect(service.code).toBe(78);
    const names = ['PORT', 'MAX_QUEUE', 'MAX_CONCURRENT', 'WORKERS', 'CLI', 'KEY', 'LOG_LEVEL'];
    const [head, ...faults] = service.stderr;
    expect(head).toBe("prompt-relay can't start:");
    expect(faults.map((fault) => fault.trim().split(':')[0]).sort()).toEqual(
      names.map((name) => `MODEL_API_${name}`).sort(),
    );
    // At exit, a flushed record may overtake the record that is being written.
    expect(service.logs.map(({ event, error }) => `${event} ${error}`).sort()).toEqual(
      faults.map((fault) => `config_invalid ${fault.trim()}`).sort(),
    );
    expect(service.stderr.join()).not.toMatch(/abc|1e3|0x2|gpt|loud/);
  });

  it('exits with 78 if it cannot create its runtime folder, as does prompt-relay check', async () => {
    const sentence = 'RUNTIME_DIRECTORY: cannot create a folder in /nowhere (ENOENT)';
    const { code, stderr, logs } = await failingService({ RUNTIME_DIRECTORY: '/nowhere' });
    expect({ code, stderr }).toEqual({ code: 78, stderr: ["prompt-relay can't start:", `  ${sentence}`] });
    expect(logs).toEqual([expect.objectContaining({ event: 'config_invalid', error: sentence })]);
    const check = await runCommand(['check'], { env: { MODEL_API_CLI: 'demo', RUNTIME_DIRECTORY: '/nowhere' } });
    expect(check).toEqual({ code: 78, stdout: '', stderr: `fault  ${sentence}\n` });
  });

  it('exits with 69 and logs one record with the remedy if its address is in use', async () => {
    const { service: first } = await relaxed();
    const second = await failingService({ MODEL_API_PORT: String(first.port) });
    expect(second.code).toBe(69);
    const error =
      `port ${first.port} is in use by another prompt-relay (process ${first.pid}): end it, or choose another port ` +
      `with MODEL_API_PORT or serve --port (bind EADDRINUSE 127.0.0.1:${first.port})`;
    expect(second.logs).toEqual([expect.objectContaining({ event: 'listen_failed', level: 'error', error })]);
    expect((await first.get('/version')).status).toBe(200);
  });

  it('exits with 69 if it cannot create its Unix socket, before it reports ready', async () => {
    const service = await failingService({ MODEL_API_SOCKET: '/nowhere/relay.sock' });
    expect(service.code).toBe(69);
    expect(await service.log('listen_failed')).toMatchObject({ error: expect.stringContaining('/nowhere/relay.sock') });
    expect(service.logs.map(({ event }) => event)).not.toContain('service_ready');
  });
});

function warningsOf(service: Service): unknown[] {
  return service.logs.filter(({ event }) => event === 'config_warning').map(({ warning }) => warning);
}

describe('A service that starts', () => {
  it('runs without setpriv if setpriv cannot bind a program to the life of its parent, and warns', async () => {
    await using folder = await temporaryFolder();
    const refuses = `echo "setpriv: unrecognized option: $1" >&2; exit 1`; // as in busybox
    await writeFile(join(folder.path, 'setpriv'), `#!/bin/sh\n${refuses}\n`, { mode: 0o755 });
    const env = { MODEL_API_CGROUP: 'off', PATH: `${folder.path}:${process.env.PATH}` };
    await using service = await startWithProgram('cat', env);
    expect(await service.post('/ask', { prompt: 'hello' })).toMatchObject({ status: 200, body: { response: 'hello' } });
    expect(warningsOf(service)).toEqual([expect.stringMatching(/^no setpriv on PATH that knows --pdeathsig/)]);
  });

  it('finds programs in the standard folders if PATH is empty', async () => {
    const env = { PATH: '', MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat' };
    const { code, stdout } = await runCommand(['check', '--json'], { env });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { model_cli: { ready: true }, warnings: [] }]);
  });

  it('warns about unknown variables, the demo model in place of a CLI, and a missing setpriv, as does prompt-relay check', async () => {
    const { service } = await relaxed();
    const warnings = warningsOf(service);
    expect(warnings).toEqual([
      'MODEL_API_TIMEOUTS is not a variable of prompt-relay: did you mean MODEL_API_TIMEOUT?',
      'MODEL_API_MAX_CONCURENT is not a variable of prompt-relay: did you mean MODEL_API_MAX_CONCURRENT?',
      expect.stringMatching(/^MODEL_API_ZZZZZZZZZZ is not a variable of prompt-relay/),
      expect.stringContaining('demo model'),
      expect.stringMatching(/^no setpriv/),
    ]);
    const { code, stdout } = await runCommand(['check', '--json'], { env: withoutPrograms });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { model_cli: { adapter: 'demo' }, warnings }]);
    expect((await runCommand(['check'], { env: withoutPrograms })).stdout).toMatch(
      /^warning {4}no claude on PATH: the demo model/m,
    );
  });

  it('also listens on its Unix socket, with mode 0660', async () => {
    const { service, socketPath } = await relaxed();
    await until(async () => ((await stat(socketPath)).mode & 0o777) === 0o660, 'the mode of the socket');
    expect(await statusOverSocket(socketPath)).toBe(200);
    expect((await service.get('/version')).status).toBe(200);
    await service.stop();
    await expect(stat(socketPath)).rejects.toThrow('ENOENT');
  });
});
