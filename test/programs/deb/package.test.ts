import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readProduct } from '../../../src/shared/config/product.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { root } from '../../support/documents/sources.js';
import { describeInLab, outsideImages, SystemdLab } from '../../support/service/systemd-lab.js';

const run = promisify(execFile);
/** Maximum time from the start of apt to the first answer of the demo model, requested with the key. */
const maxSecondsToAnswer = 300;
const { version } = readProduct();
const newer = '99.0.0';
const store = '/var/lib/prompt-relay/store.db';
const json = 'Content-Type: application/json';
const itWithLintian = existsSync('/usr/bin/lintian') ? it : it.skip;
if (itWithLintian === it.skip) process.stderr.write('Skipped, because lintian is not installed: its verdict.\n');

let folder: TemporaryFolder;

/** Builds the package without compression: seconds instead of a minute. Resolves with its path. */
async function build(name: string, options: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const output = join(folder.path, name);
  const args = ['dist/tools/deb.js', '--compression', 'none', '--output', output, ...options];
  const { stdout, stderr } = await run(process.execPath, args, { cwd: root, env: { ...process.env, ...env } });
  expect(stderr).toMatch(/(?:^[A-Z].* …\n){3,}/m);
  return join(output, /prompt-relay_\S+\.deb/.exec(stdout)?.[0] ?? 'nothing');
}

async function digestOf(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder[Symbol.asyncDispose]());

describe('The package for all architectures', () => {
  it('depends on the nodejs of the system, and contains no Node binary', async () => {
    const file = await build('all', ['--all']);
    const { stdout: fields } = await run('dpkg-deb', ['--field', file, 'Architecture', 'Depends']);
    expect(fields).toBe('Architecture: all\nDepends: nodejs (>= 22.13), procps, systemd (>= 250)\n');
    const { stdout: files } = await run('dpkg-deb', ['--contents', file], { maxBuffer: 1e7 });
    expect(files).not.toMatch(/\/bin\/node$|\.node$/m);
    expect(files).toMatch(/^-rwxr-xr-x root\/root .* \.\/usr\/bin\/prompt-relay$/m);
    expect(files).toMatch(/^-rw------- root\/root .* \.\/etc\/prompt-relay\/environment$/m);
    expect(files).toContain(' ./usr/share/doc/prompt-relay/docs/operations.md\n'); // alerts link to this page
    expect(files).not.toContain('/decisions/');
    for (const page of ['README.md', 'docs/clis.md'])
      expect(files).toContain(` ./usr/lib/prompt-relay/${version}/${page}\n`); // the console shows it
    expect(files).toMatch(/\/features\/redis\/scripts\/\w[\w-]*\.lua$/m);
    const { stdout: unit } = await run('sh', [
      '-c',
      `dpkg-deb --fsys-tarfile ${file} | tar -xO ./lib/systemd/system/prompt-relay.service`,
    ]);
    const program = `/usr/bin/node /usr/lib/prompt-relay/${version}/dist/src`;
    expect(unit).toContain(`\nExecStart=${program}/primary/main.js\n`);
    expect(unit).toContain(`\nExecReload=+${program}/command/main.js check --settings --unit %n\n`);
  });

  it('is identical to the byte when it is built again elsewhere', async () => {
    const umask = ['-c', 'umask 077; exec "$@"', 'sh', process.execPath, 'dist/tools/deb.js', '--compression', 'none'];
    const output = join(folder.path, 'again');
    await run('sh', [...umask, '--all', '--output', output], {
      cwd: root,
      env: { ...process.env, TMPDIR: folder.path },
    });
    const name = `prompt-relay_${version}_all.deb`;
    expect(await digestOf(join(output, name))).toBe(await digestOf(join(folder.path, 'all', name)));
  });
});

describeInLab()('The package with a bundled Node, under a real systemd', () => {
  let lab: SystemdLab;
  let file: string;
  let key: string;
  let begunMs: number;
  const apt = async (...words: string[]) => {
    const said = await lab.shell(`DEBIAN_FRONTEND=noninteractive apt-get -y ${words.join(' ')} 2>&1`);
    return said.replaceAll('\r', '');
  };
  const packageOf = (of: string) => `/root/prompt-relay_${of}_amd64.deb`;
  const set = (name: string, value: string) =>
    lab.shell(`sed -i '/^${name}=/d; $ a ${name}=${value}' /etc/prompt-relay/environment`);

  /** Installs a version unless it is there: a first try of a test may have installed the other one. */
  async function has(wanted: string): Promise<void> {
    if ((await lab.version()).version !== wanted) await apt('install', '--allow-downgrades', packageOf(wanted));
  }

  async function chat(message: string, id?: string) {
    const body = JSON.stringify({ message, conversation_id: id });
    const headers = ['--header', json, '--header', `X-API-Key: ${key}`];
    return JSON.parse(await lab.run('curl', '--silent', ...headers, '--data', body, 'http://127.0.0.1:5051/chat'));
  }

  beforeAll(async () => {
    file = await build('old', []);
    lab = await SystemdLab.boot();
    await lab.run('rm', '-f', '/usr/sbin/policy-rc.d'); // a container may forbid services to start
    await lab.copyProgram(file, packageOf(version));
    await lab.copyProgram(await build('new', ['--version', newer]), packageOf(newer));
    await lab.copyFixture('sends-requests.js');
  }, 300_000);
  afterAll(() => lab?.[Symbol.asyncDispose]());

  itWithLintian(
    'has no lintian fault, except for those with a documented reason',
    async () => {
      const uncompressed = 'uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball';
      const options = ['--allow-root', '--fail-on', 'error,warning', '--suppress-tags', uncompressed];
      const { stdout } = await run('lintian', [...options, file]).catch((error) => error);
      expect(stdout).toBe('');
    },
    300_000,
  );

  it('serves after its installation, and prints the next steps', async () => {
    await lab.attempt('dpkg', '--purge', 'prompt-relay'); // what a first try has installed
    begunMs = performance.now();
    const said = await apt('install', packageOf(version));
    expect(said).toMatch(/prompt-relay listens on http:\/\/127\.0\.0\.1:5051, also after a reboot/);
    key = await lab.run('cat', '/etc/prompt-relay/api_key');
    expect(key).toMatch(/^[\w+/]{32}$/);
    const health = await lab.health();
    expect(health).toMatchObject({ store: { kind: 'sqlite', up: true }, readiness: { model_cli: { cli: 'claude' } } });
    expect(await lab.systemctl('is-enabled', 'prompt-relay.socket', 'prompt-relay.service')).toBe('enabled\nenabled');
    const verified = await lab.shell('systemd-analyze verify prompt-relay.service prompt-relay.socket 2>&1');
    expect(verified).toBe('');
    const modes = 'stat --format "%n %a %U" /etc/prompt-relay/* /var/lib/prompt-relay';
    expect(await lab.shell(modes)).toBe(
      '/etc/prompt-relay/api_key 600 root\n/etc/prompt-relay/environment 600 root\n/var/lib/prompt-relay 700 prompt-relay',
    );
  });

  it('installs the command with its manual and its completion', async () => {
    await set('MODEL_API_CLI', 'demo');
    await lab.systemctl('restart', 'prompt-relay');
    const asked = lab.shell(`cd /; MODEL_API_KEY='${key}' prompt-relay ask 'My name is Ada'`);
    expect(await asked).toContain('Ada');
    const seconds = (performance.now() - begunMs) / 1000;
    process.stderr.write(`from apt to the first answer: ${seconds.toFixed(0)} s\n`);
    expect(seconds).toBeLessThan(maxSecondsToAnswer);
    expect(await lab.run('prompt-relay', '--version')).toBe(`prompt-relay ${version}`);
    expect(await lab.shell('zcat /usr/share/man/man1/prompt-relay.1.gz | head -n 2')).toContain('.TH PROMPT');
    const completes = '. /usr/share/bash-completion/completions/prompt-relay && complete -p prompt-relay';
    expect(await lab.shell(completes)).toMatch(/^complete .* prompt-relay$/);
  });

  it('is upgraded under load: no request is refused, and conversations continue', async () => {
    await has(version);
    const sinceSeconds = Math.floor(Date.now() / 1000);
    const { conversation_id: id } = await chat('I am Grace');
    await using asking = lab.traffic('/ask', 2, JSON.stringify({ prompt: 'Hello' }), key);
    await using looking = lab.traffic('/version', 4);
    await until(async () => (await lab.running()) > 0, 'a job to run');
    await apt('install', packageOf(newer));
    expect((await lab.version()).version).toBe(newer);
    const [asked, looked] = await Promise.all([asking.stop(), looking.stop()]);
    process.stderr.write(`upgrade: ${JSON.stringify({ asked, looked })}\n`);
    expect([Object.keys(asked), Object.keys(looked)]).toEqual([['200'], ['200']]);
    expect(await chat('What is my name?', id)).toMatchObject({
      response: expect.stringContaining('Grace'),
      message_count: 4,
    });
    expect(await lab.run('ls', '/usr/lib/prompt-relay')).toBe(newer);
    expect(await lab.show('NRestarts')).toBe('0');
    const faults = 'worker_gone|internal_error|worker_start_failed|shutdown_timeout';
    expect(
      await lab.shell(`journalctl --since=@${sinceSeconds} --output cat | grep -E '"event":"(${faults})"' || true`),
    ).toBe('');
  });

  it('lists the jobs that take longer than the drain of an upgrade or a downgrade', async () => {
    await has(newer);
    await set('MODEL_API_DRAIN_TIMEOUT_SECONDS', '1');
    await set('MODEL_API_CLI', 'command');
    await set('MODEL_API_CLI_COMMAND', '"sleep 300"');
    await lab.systemctl('restart', 'prompt-relay');
    const asked = lab.ask('Hello', key);
    await until(async () => (await lab.running()) === 1, 'the job to run');
    const said = await apt('install', '--allow-downgrades', packageOf(version));
    expect(await asked).toMatch(/"error":"shutting_down"[\s\S]*\n503$/);
    expect(said).toMatch(/took longer than its drain, and were cut:\n\{.*"path":"\/ask".*"outcome":"shutting_down"/);
    expect((await lab.version()).version).toBe(version);
  });

  it('reports a store of a newer version, and names the copy to restore', async () => {
    await set('MODEL_API_CLI', 'demo');
    await lab.systemctl('stop', 'prompt-relay.socket', 'prompt-relay');
    const node = `/usr/lib/prompt-relay/${version}/bin/node`;
    const script = `new (require('node:sqlite').DatabaseSync)('${store}').exec('PRAGMA user_version = 99')`;
    await lab.run(node, '--no-warnings', '-e', script);
    await lab.run('touch', `${store}.version-1`);
    const said = await apt('install', '--reinstall', packageOf(version));
    expect(said).toMatch(
      /prompt-relay does not start[\s\S]*newer prompt-relay.*store\.db\.version-1 is the copy from before/,
    );
    expect([await lab.show('ActiveState'), await lab.show('ExecMainStatus')]).toEqual(['failed', '78']);
  });

  it('keeps settings and conversations when it is removed, and deletes them when it is purged', async () => {
    await apt('remove', 'prompt-relay');
    expect(await lab.attempt('systemctl', 'cat', 'prompt-relay.service')).toBeNull();
    expect(await lab.attempt('curl', '--silent', 'http://127.0.0.1:5051/health')).toBeNull();
    expect(await lab.attempt('pgrep', '--euid', 'prompt-relay')).toBeNull();
    await lab.run('ls', store, '/etc/prompt-relay/environment', '/etc/prompt-relay/api_key');
    await apt('purge', 'prompt-relay');
    const places = '/etc /lib /opt /run /usr /var';
    const found = await lab.shell(`find ${places} -xdev -name '*prompt-relay*' ! -path '/var/log/*' ${outsideImages}`);
    expect(found).toBe('');
    expect(await lab.attempt('getent', 'passwd', 'prompt-relay')).toBeNull();
    expect(await lab.attempt('getent', 'group', 'prompt-relay')).toBeNull();
    expect(await lab.shell('systemctl list-units --all --plain --no-legend "prompt-relay*"')).toBe('');
  });
});
