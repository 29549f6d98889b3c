import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { envFor, ResendingService, runCommand, spawnCommand } from '../../support/clients/command.js';
import { type KeyHolder, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { script, startService, startWithProgram } from '../../support/service/service.js';

const usage = 64;
const unavailable = 69;
const tryLater = 75;
const notAllowed = 77;
const config = 78;

function answerOf(status: string, body: string): string {
  return `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const halfAResponse = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\n{';

/** Starts a server on a loopback port that sends these bytes to every client, and closes the connection. */
async function serverThatSends(bytes: string): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((socket) =>
    socket
      .on('error', () => {})
      .resume()
      .end(bytes),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

describe('The command without a service', () => {
  it('shows its help, the help of each command, and its version', async () => {
    const { code, stdout } = await runCommand(['--help']);
    const names = [
      ...['serve', 'check', 'ask', 'batch', 'chat', 'status', 'jobs', 'cancel', 'recheck', 'login', 'logout', 'whoami'],
      ...['models', 'usage', 'keys', 'accounts', 'store', 'version', 'completion'],
    ];
    expect(code).toBe(0);
    for (const name of names) expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'));
    for (const name of names) {
      const page = await runCommand([name, '--help']);
      expect(page).toMatchObject({ code: 0, stdout: expect.stringContaining(`Usage: prompt-relay ${name}`) });
    }
    for (const flag of ['--version', '-v', '-V'])
      expect((await runCommand([flag])).stdout).toMatch(/^prompt-relay \d+\.\d+\.\d+\n$/);
  });

  it.each([
    [['statsu'], 'did you mean status?'],
    [['status', '--foo'], "unknown option '--foo'"],
    [['--foo'], "unknown option '--foo'"],
    [['status', 'now'], 'status: unexpected argument now'],
    [['ask', '--model'], '--model'],
    [['status', '--watch', '--interval', '0'], '--interval'],
    [['chat', '--conversation', 'x', '--system', 'y'], '--system'],
    [['ask', ' '], 'the prompt is empty'],
    [['batch'], 'name the file with the prompts'],
    [['batch', 'x', '--retry-failed'], '--retry-failed needs a file'],
    [['batch', 'x', '--concurrency', '0'], '--concurrency: must be a whole number'],
    [['batch', 'x', '--ordered', '--unordered'], '--ordered or --unordered'],
    [['batch', 'no-such-file'], 'no-such-file: there is no such file or folder'],
    [['ask', 'x', '--image', '/no/such.png'], '--image: /no/such.png: there is no such file or folder'],
    [['ask', 'x', '--schema', '/etc'], '--schema: /etc: it is a folder'],
    [['keys', 'rotate', 'ada', '--old-until', 'soon', 'x'], '--old-until: must be a day such as 2027-01-31'],
    [['models', '--url', 'ftp://relay'], '--url'],
    [['models', '--url', 'unix:relay'], '--url'],
    [['serve', '--port', 'x'], '--port: must be a whole number from 0 to 65535'],
    [['ask', 'x', '--effort', 'huge'], '--effort: must be low, medium, high, xhigh or max'],
    [['ask', 'x', '--schema', '{'], '--schema'],
    [['ask', 'x', '--image', '/etc/hostname'], '--image'],
    [['completion', 'csh'], 'completion: the argument must be bash, zsh or fish'],
    [['usage', '--since', '2026-02-30'], '--since'],
    [['usage', '--until', 'today'], '--until'],
  ])('rejects %j with exit code 64 and a message', async (args, message) => {
    const { code, stdout, stderr } = await runCommand(args);
    expect({ code, stdout }).toEqual({ code: usage, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  it('rejects a pipe as an image at once, also one that a line of a batch names', async () => {
    await using folder = await temporaryFolder();
    const [pipe, prompts] = [join(folder.path, 'pipe'), join(folder.path, 'prompts.jsonl')];
    execFileSync('mkfifo', [pipe]);
    const message = `--image: ${pipe}: it is not a regular file`;
    expect(await runCommand(['ask', 'x', '--image', pipe])).toMatchObject({
      code: usage,
      stderr: `prompt-relay: ${message}\n`,
    });
    await writeFile(prompts, `${JSON.stringify({ prompt: 'x', images: [pipe] })}\n`);
    await using service = await startService();
    const { code, stdout } = await runCommand(['batch', prompts], { env: envFor(service) });
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('it is not a regular file') });
  });

  it.each([
    ...['status', 'jobs', 'jobs cancel x', 'jobs show x', 'cancel x', 'models', 'usage', 'ask x', 'store verify'],
    'version --url',
  ])('prints no control characters of a server: %s', async (line) => {
    const hostile = '\u001b]0;title\u0007\u001b[2J\u009bm\rred';
    const fields = { error: 'not_found', message: hostile, request_id: hostile };
    await using server = await serverThatSends(
      answerOf('404 Not Found', JSON.stringify(fields).replaceAll('\u009b', '\\u009b')),
    );
    const url = `http://127.0.0.1:${server.port}`;
    const words = line.split(' ').filter((word) => word !== '--url');
    const { code, stdout, stderr } = await runCommand([...words, '--url', url]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('red');
    expect(stdout + stderr).not.toMatch(/(?![\n\t])\p{Cc}/u);
  });

  it.each(['status', 'models', 'usage', 'ask', 'recheck', 'chat'])(
    'reports that no service answers: %s',
    async (name) => {
      const { code, stderr } = await runCommand([name], { env: { MODEL_API_PORT: '5' }, input: 'hello\n' });
      expect(code).toBe(unavailable);
      expect(stderr).toContain('no service answers at http://127.0.0.1:5 (connection refused)');
    },
  );

  it.each<[string, string, number, string]>([
    ['a web page', answerOf('200 OK', '<html>'), 76, 'is not a prompt-relay service'],
    ['a redirect', answerOf('302 Found', ''), 76, 'is not a prompt-relay service'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', 76, 'is not a prompt-relay service'],
    ['nothing, and closes', '', 69, 'no service answers'],
    ['half a response', halfAResponse, 69, 'was cut off'],
  ])('reports a server that sends %s', async (_what, bytes, expected, message) => {
    await using server = await serverThatSends(bytes);
    for (const name of ['models', 'ask']) {
      const { code, stdout, stderr } = await runCommand([name], { env: envFor(server), input: 'hello' });
      expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
      expect(stderr).toContain(message);
      expect(stderr).not.toContain(' at Object');
    }
  });
});

describe('An invalid API key', () => {
  it.each(['ask', 'status'])('is not shown: %s', async (name) => {
    const env = { MODEL_API_KEY: 'my-secret\nother-secret', MODEL_API_PORT: '5' };
    const { code, stdout, stderr } = await runCommand([name], { env, input: 'hello' });
    const message = 'prompt-relay: MODEL_API_KEY: the key must consist of printable ASCII characters without spaces\n';
    expect({ code, stdout, stderr }).toEqual({ code: config, stdout: '', stderr: message });
  });
});

describe('check', () => {
  it('shows the configuration, and that the model CLI is ready', async () => {
    const env = { MODEL_API_CLI: 'demo', MODEL_API_PORT: '6001', MODEL_API_KEY: 'secret-key', MODEL_API_WROKERS: '2' };
    const plain = await runCommand(['check'], { env });
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    expect(plain.stdout).toMatch(/^address {4}http:\/\/127\.0\.0\.1:6001$/m);
    expect(plain.stdout).toMatch(/^API keys {3}default$/m);
    expect(plain.stdout).toMatch(/^ready {6}yes/m);
    expect(plain.stdout).toContain('did you mean MODEL_API_WORKERS?');
    const { stdout } = await runCommand(['check', '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({
      url: 'http://127.0.0.1:6001',
      keys: ['default'],
      model_cli: { adapter: 'demo', ready: true, error: null },
      models: [{ id: 'eliza', default: true }, { id: 'echo' }],
    });
    expect(plain.stdout + stdout).not.toContain('secret-key');
  });

  it('exits with 69 when the model CLI is not installed', async () => {
    const env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: '/nonexistent/llm -m big' };
    const { code, stdout } = await runCommand(['check'], { env });
    expect(code).toBe(unavailable);
    expect(stdout).toMatch(/^ready {6}no: the model CLI llm is not installed on this host \(MODEL_API_CLI, /m);
  });

  it('shows the whole command line, and warns about shell syntax in it', async () => {
    const { stdout } = await runCommand(['check'], {
      env: {
        MODEL_API_CLI: 'command',
        MODEL_API_CLI_COMMAND: 'cat -u {model} | tee $LOG',
        MODEL_API_CLI_ARGS: "-- 'a b'",
        MODEL_API_DEFAULT_MODEL: 'big',
      },
    });
    expect(stdout).toMatch(/^command {4}cat -u big '\|' tee '\$LOG' -- 'a b'$/m);
    expect(stdout).toMatch(/^warning {4}MODEL_API_CLI_COMMAND: \| \$LOG mean nothing without a shell: /m);
  });

  it('checks the settings alone with --settings, and runs no program', async () => {
    await using folder = await temporaryFolder();
    const keys = join(folder.path, 'keys');
    await writeFile(keys, 'nonsense\n');
    const check = (env: Readonly<Record<string, string>>, ...flags: readonly string[]) =>
      runCommand(['check', '--settings', ...flags], { env });
    const missing = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: '/nonexistent/llm' };
    expect(await check({ ...missing, MODEL_API_KEYS_FILE: keys })).toEqual({
      ...{ code: 0, stdout: 'The service can start with these settings.\n' },
      stderr: expect.stringContaining('warning  MODEL_API_KEYS_FILE: line 1: must begin with name:sha256:\n'),
    });
    const wrong = { MODEL_API_CLI: 'demo', MODEL_API_DEFAULT_MODEL: 'gpt' };
    const stderr = 'fault  MODEL_API_DEFAULT_MODEL: gpt must be one of eliza, echo\n';
    expect(await check(wrong)).toEqual({ code: 78, stdout: '', stderr });
    expect(JSON.parse((await check(missing, '--json')).stdout)).toEqual({ faults: [], warnings: [] });
    expect((await check(missing, '--ask')).stderr).toContain('use --settings or --ask');
  });

  it('asks one question with --ask, and shows the answer with its times', async () => {
    const env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: "sh -c 'cat; echo; echo Hello.'" };
    const { code, stdout } = await runCommand(['check', '--ask'], { env });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^asked {6}Say hello .* \(this spends tokens\)$/m)]);
    expect(stdout).toMatch(/^answer {5}Say hello in one short sentence\. Hello\.$/m);
    expect(stdout).toMatch(/^took {7}in \S+ m?s by sh; first words after \S+ m?s, \d pieces?$/m);
    expect((await runCommand(['check'], { env })).stdout).not.toContain('asked');
  });

  it('exits with 1 if the question is not answered, and prints the output of the program', async () => {
    const env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: "sh -c 'echo no such model >&2; exit 3'" };
    const { code, stdout } = await runCommand(['check', '--ask'], { env });
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(
        /^answer .*failed: cli_error \(crashed\): the model CLI exited with code 3: no such model$/m,
      ),
    ]);
    const { asked } = JSON.parse((await runCommand(['check', '--ask', '--json'], { env })).stdout);
    expect(asked).toMatchObject({ answer: null, first_delta_ms: null, deltas: 0 });
  });

  it('checks the settings of a file as systemd reads them, without its environment', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'environment');
    await writeFile(path, '# ours\nMODEL_API_CLI="demo"\nexport MODEL_API_PORT=1\nMODEL_API_WORKERS=3 \n');
    const env = { MODEL_API_WORKERS: 'x', MODEL_API_PORT: '9999' };
    const sound = await runCommand(['check', '--env-file', path], { env });
    expect(sound.code).toBe(0);
    expect(sound.stdout).toMatch(/^address +http:\/\/127.0.0.1:5051$/m);
    expect(sound.stdout).toMatch(/^workers +3$/m);
    expect(sound.stderr).toBe(`warning  ${path}: line 3: systemd ignores it, because it is not NAME=value\n`);
    const other = join(folder.path, 'other');
    await writeFile(other, 'MODEL_API_WORKERS=many\n');
    const faulty = await runCommand(['check', '--env-file', path, '--env-file', other, '--json'], { env });
    expect([faulty.code, JSON.parse(faulty.stdout).faults]).toEqual([
      78,
      [expect.stringContaining('MODEL_API_WORKERS')],
    ]);
    const missing = await runCommand(['check', '--env-file', '/nowhere']);
    expect([config, 9]).toContain(missing.code); // Node 20 consumes the flag itself
    expect(missing.stderr).toContain('/nowhere');
    for (const args of [['x'], ['--unit', '--env-file', path], ['--unit', 'a', 'b']])
      expect((await runCommand(['check', ...args])).code).toBe(usage);
  });

  it('exits with 78 and lists all faults of the configuration', async () => {
    const env = { MODEL_API_PORT: 'x', MODEL_API_WORKERS: '0' };
    const { code, stdout, stderr } = await runCommand(['check', '--json'], { env });
    expect(code).toBe(config);
    expect(JSON.parse(stdout).faults).toHaveLength(2);
    expect(stderr).toMatch(/^fault {2}MODEL_API_PORT: .*\nfault {2}MODEL_API_WORKERS: .*\n$/);
  });
});

describe('serve', () => {
  it.each([[['serve']], [[]]])('runs the service in the same process: %j', async (args) => {
    const child = spawnCommand(args, { MODEL_API_CLI: 'demo', MODEL_API_PORT: '0', MODEL_API_WORKERS: '1' });
    let log = '';
    child.stdout?.on('data', (chunk) => {
      log += chunk;
    });
    const exited = once(child, 'exit');
    const port = await until(() => /"service_ready".*"port":(\d+)/.exec(log)?.[1], 'the service to be ready');
    const { code, stdout } = await runCommand(['ask', 'Hello, my name is Ada'], { env: { MODEL_API_PORT: port } });
    child.kill('SIGTERM');
    expect({ code, exit: await exited }).toEqual({ code: 0, exit: [0, null] });
    expect(stdout).toContain('Nice to meet you, Ada.');
    expect(log).toContain('"shutdown_complete"');
  });

  it('exits with 78 for an invalid configuration', async () => {
    expect(await runCommand([], { env: { MODEL_API_PORT: 'x' } })).toMatchObject({ code: config });
  });
});

describe('ask', () => {
  it('prints the answer as text or JSON, and reads the prompt from arguments or stdin', async () => {
    await using service = await startService();
    const env = envFor(service);
    const ask = (args: readonly string[], input?: string) =>
      runCommand(['ask', '--model', 'echo', ...args], { env, ...(input !== undefined && { input }) });
    expect(await ask(['two', 'words'])).toEqual({ code: 0, stdout: 'two words\n', stderr: '' });
    expect(await ask([], 'from žluť\nstdin\n')).toEqual({ code: 0, stdout: 'from žluť\nstdin\n', stderr: '' });
    expect((await ask(['before', '-', 'after'], 'middle')).stdout).toBe('before\n\nmiddle\n\nafter\n');
    expect((await ask(['\u001b[31mred'])).stdout).toBe('\u001b[31mred\n');
    const { stdout } = await ask(['--json', 'hello']);
    expect(JSON.parse(stdout)).toMatchObject({ success: true, response: 'hello', model: 'echo' });
    expect((await ask(['--json', '\u009b31mred'])).stdout).toContain('"response":"\\u009b31mred"');
  });

  it('cancels its job at Ctrl-C', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    const child = spawnCommand(['ask', 'please wait'], envFor(service));
    await untilJobs(service, 1, 0);
    child.kill('SIGINT');
    await once(child, 'exit');
    await recovers(service);
  });

  it('prints only the final answer when the model starts over', async () => {
    await using service = await ResendingService.start();
    const answer = { code: 0, stdout: 'It is Paris.\n', stderr: '' };
    expect(await runCommand(['ask', 'hello'], { env: envFor(service) })).toEqual(answer);
  });

  it('exits with 141 if the reader of its output has closed it', async () => {
    await using service = await startService();
    const child = spawnCommand(['ask', '--model', 'echo'], envFor(service));
    child.stdin?.end('y'.repeat(500_000)); // more than the buffer of a pipe
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.stdout?.destroy();
    expect(await once(child, 'exit')).toEqual([141, null]);
  });

  it('exits with 74 when its output cannot be written', async () => {
    await using service = await startService();
    const full = openSync('/dev/full', 'w');
    const { code, stderr } = await runCommand(['ask', 'hello'], { env: envFor(service), stdout: full });
    closeSync(full);
    expect({ code, stderr }).toEqual({
      code: 74,
      stderr: 'prompt-relay: cannot write to stdout: ENOSPC: no space left on device, write\n',
    });
  });

  it('has a message and an exit code for each refusal', async () => {
    await using gate = await createAnswerGate();
    const limits = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '0' };
    await using service = await startWithProgram(gate.command, { ...limits, MODEL_API_KEY: 'the-right-key' });
    const env = envFor(service);
    const withKey = { ...env, MODEL_API_KEY: 'the-right-key' };
    const withoutKey = await runCommand(['ask', 'hello'], { env });
    expect(withoutKey).toMatchObject({ code: notAllowed, stdout: '' });
    expect(withoutKey.stderr).toContain('unauthorized: an API key is needed');
    expect(await runCommand(['ask', 'hello', '--key', 'wrong'], { env: withKey })).toMatchObject({ code: notAllowed });
    expect(await runCommand(['ask', 'hello', '--model', 'a b'], { env: withKey })).toMatchObject({ code: 65 });
    const running = runCommand(['ask', 'first'], { env: withKey });
    await untilJobs(service, 1, 0);
    const late = await runCommand(['ask', 'second'], { env: withKey });
    expect(late).toMatchObject({ code: tryLater, stdout: '' });
    expect(late.stderr).toContain(
      'concurrency_limited: all slots are taken and the queue is full (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE) (try again in 1 s)',
    );
    await gate.open();
    expect(await running).toMatchObject({ code: 0, stdout: 'first\n' });
  });

  it('prints nothing when the model fails in the middle of its answer', async () => {
    await using service = await startWithProgram(script('dies-by-signal.pl', 'KILL'));
    expect(await runCommand(['ask', 'hello'], { env: envFor(service) })).toMatchObject({ code: 1, stdout: '' });
  });

  it('shows the request ID of a failed job, which is in the log', async () => {
    await using service = await startWithProgram(script('exits-early.pl', '3'));
    const { code, stderr } = await runCommand(['ask', 'hello'], { env: envFor(service) });
    expect(code).toBe(1);
    const [, id] = /cli_error \(\w+\): .* \(request (\S+)\)/.exec(stderr) ?? [];
    await service.log('http_request_completed', (record) => record.request_id === id);
  });
});

describe('chat with input from a file', () => {
  it('runs one turn per line until the end, /exit or a failed turn', async () => {
    await using service = await startService();
    const env = envFor(service);
    const input = 'My name is Ada\n\nWhat is my name?\n/new\nWhat is my name?\n';
    const { code, stdout } = await runCommand(['chat'], { env, input });
    const [, second, third] = stdout.trimEnd().split('\n');
    expect({ code, second }).toEqual({ code: 0, second: 'Your name is Ada.' });
    expect(third).not.toContain('Ada');
    expect(await runCommand(['chat'], { env, input: '/exit\nhello\n' })).toMatchObject({ code: 0, stdout: '' });
    const unknown = await runCommand(['chat', '--conversation', 'nonesuch'], { env, input: 'one\ntwo\n' });
    const stderr = 'The service has no conversation nonesuch.\n';
    expect(unknown).toEqual({ code: 65, stdout: '', stderr });
  });
});

describe('The commands for operators', () => {
  it('show the service, and exit with 0 when it is ok', async () => {
    await using service = await startService({ env: { MODEL_API_KEY: 'the-right-key' } });
    const env = envFor(service);
    const { code, stdout } = await runCommand(['status'], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^prompt-relay \S+ {2}ok {2}http/);
    expect(stdout).toMatch(/^slots {6}0 of 4 {4}░░░░$/m);
    expect(stdout).not.toContain('\u001b');
    const { stdout: json } = await runCommand(['status', '--json'], { env });
    expect(JSON.parse(json)).toMatchObject({ health: { status: 'ok' }, history: [{ trigger: 'start' }], change: null });
    expect(await runCommand(['recheck'], { env })).toMatchObject({ code: notAllowed });
    const checked = await runCommand(['recheck', '--key', 'the-right-key'], { env });
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringMatching(/^demo 1\.0\.0: ready \(.*forced\)\n$/) });
  });

  it('exit with 1 when the model CLI is not ready, also in strict mode', async () => {
    const env = { MODEL_API_KEY: 'the-right-key', MODEL_API_STRICT_HEALTH: 'true' };
    await using service = await startWithProgram('/nonexistent/llm', env);
    const keyed = { ...envFor(service), MODEL_API_KEY: 'the-right-key' };
    const seen = await runCommand(['status'], { env: keyed });
    expect(seen).toMatchObject({ code: 1, stdout: expect.stringContaining('degraded') });
    const checked = await runCommand(['recheck', '--json'], { env: keyed });
    expect(checked.code).toBe(1);
    expect(JSON.parse(checked.stdout).readiness.model_cli.status).toBe('not_ready');
  });

  it('show the version of the program, and of a running service', async () => {
    const nowhere = await runCommand(['version'], { env: { MODEL_API_PORT: '1' } });
    expect([nowhere.code, nowhere.stderr]).toEqual([0, '']);
    expect(nowhere.stdout).toBe((await runCommand(['--version'])).stdout);
    expect((await runCommand(['version', '--url', '127.0.0.1:1'])).code).toBe(unavailable);
    await using service = await startService();
    const { stdout } = await runCommand(['version'], { env: envFor(service) });
    expect(stdout).toMatch(/^prompt-relay (\S+)\nservice \1 at http:\/\/127\.0\.0\.1:\d+, demo 1\.0\.0\n$/);
    const json = JSON.parse((await runCommand(['version', '--json'], { env: envFor(service) })).stdout);
    expect(json).toMatchObject({ version: json.service.version, service: { url: service.url, name: 'prompt-relay' } });
    const alone = await runCommand(['version', '--json'], { env: { MODEL_API_PORT: '1' } });
    expect(JSON.parse(alone.stdout)).toMatchObject({ service: null });
  });

  it('list the models', async () => {
    await using service = await startService();
    const env = envFor(service);
    expect((await runCommand(['models'], { env })).stdout).toMatch(
      /^eliza {2}\* {2}tools, images {2}Eliza: .*\necho {6}tools, images {2}Echo: /,
    );
    expect(JSON.parse((await runCommand(['models', '--json'], { env })).stdout)).toMatchObject({ count: 2 });
  });

  it('keep watching a service whose responses are cut off', async () => {
    await using broken = await serverThatSends(halfAResponse);
    const child = spawnCommand(['status', '--watch', '--json', '--interval', '0.1'], envFor(broken));
    const snapshots: Record<string, unknown>[] = [];
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) =>
      snapshots.push(JSON.parse(line)),
    );
    const messages = text(child.stderr as NodeJS.ReadableStream);
    // Node warns of the eleventh listener on one signal.
    await until(() => snapshots.length > 11, 'the twelfth snapshot');
    expect(snapshots[0]).toEqual({ error: expect.stringContaining('was cut off') });
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await messages).toBe('');
  });

  it('watch rates, a service that stops and returns, until Ctrl-C', async () => {
    await using first = await startService();
    const args = ['status', '--watch', '--json', '--interval', '0.1'];
    const child = spawnCommand(args, envFor(first));
    const snapshots: Record<string, unknown>[] = [];
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) =>
      snapshots.push(JSON.parse(line)),
    );
    await until(() => snapshots.length > 0, 'the first snapshot');
    await first.post('/ask', { prompt: 'hello' });
    await until(
      () => snapshots.some(({ change }) => (change as { jobs: number } | null)?.jobs === 1),
      'the job to be seen',
    );
    await first.stop();
    await until(
      () => snapshots.some(({ error }) => String(error).includes('no service answers')),
      'its end to be seen',
    );
    await using _second = await startService({ env: { MODEL_API_PORT: String(first.port) } });
    await until(() => snapshots.at(-1)?.change, 'the next one to be seen');
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

describe('Flags and addresses', () => {
  it('serve prefers flags for its port, host and CLI to the environment, and accepts requests', async () => {
    const env = { MODEL_API_CLI: 'command', MODEL_API_PORT: 'x', MODEL_API_WORKERS: '1' };
    const child = spawnCommand(['serve', '--port', '0', '--host', '127.0.0.1', '--cli', 'demo'], env);
    let log = '';
    child.stdout?.on('data', (chunk) => {
      log += chunk;
    });
    const exited = once(child, 'exit');
    const port = await until(() => /"service_ready".*"port":(\d+)/.exec(log)?.[1], 'the service to be ready');
    const asked = await runCommand(['ask', '-m', 'echo', '--url', `localhost:${port}`, 'hello']);
    child.kill('SIGTERM');
    await exited;
    expect(asked).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
  });

  it('ask reaches a Unix socket, and sends effort, schema, images and documents', async () => {
    await using folder = await temporaryFolder();
    const socket = join(folder.path, 'relay.sock');
    await using _service = await startService({ env: { MODEL_API_SOCKET: socket } });
    const ask = (...args: readonly string[]) => runCommand(['ask', '--url', `unix:${socket}`, '-m', 'echo', ...args]);
    expect(await ask('hello')).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
    const image = join(folder.path, 'dot');
    await writeFile(image, Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'));
    expect((await ask('--image', image, 'look')).stdout).toMatch(
      /^I was given an image \(image\/png, 16 bytes\).* look\n$/,
    );
    const file = join(folder.path, 'a.txt');
    await writeFile(file, 'grüße');
    expect((await ask('--file', file, 'look')).stdout).toBe('<document name="a.txt">\ngrüße\n</document>\n\nlook\n');
    const structured = await ask('--schema', '{"type":"object"}', '{"a":1}');
    expect([structured.code, structured.stdout + structured.stderr]).toEqual([0, expect.stringContaining('{')]);
    const gone = await runCommand(['ask', '--url', 'unix:/nonexistent/relay.sock', 'hello']);
    expect(gone).toMatchObject({
      code: unavailable,
      stderr: expect.stringContaining('at unix:/nonexistent/relay.sock'),
    });
  });

  it('a chat is saved as Markdown, in a new file only', async () => {
    await using folder = await temporaryFolder();
    await using service = await startService();
    const path = join(folder.path, 'talk.md');
    const input = `/save ${path}\n`;
    const env = envFor(service);
    const nothing = await runCommand(['chat', '-m', 'echo'], { env, input });
    expect(nothing).toMatchObject({ code: usage, stderr: 'The conversation has no messages yet.\n' });
    const saved = await runCommand(['chat', '-m', 'echo'], { env, input: `hello there\n${input}${input}` });
    expect(saved).toMatchObject({ code: 74, stderr: expect.stringContaining('already exists: name a new file') });
    expect(await readFile(path, 'utf8')).toContain('hello there');
  });

  it('a chat never sends a mistyped command to the model, but sends a text that starts with two slashes', async () => {
    await using service = await startService();
    const env = envFor(service);
    const sent = await runCommand(['chat', '-m', 'echo'], { env, input: '//etc is a folder\n' });
    expect(sent).toMatchObject({ code: 0, stdout: '/etc is a folder\n' });
    const mistyped = await runCommand(['chat', '-m', 'echo'], { env, input: '/hepl\nhello\n' });
    expect(mistyped).toEqual({ code: usage, stdout: '', stderr: expect.stringContaining('/hepl is not a command') });
  });
});

describe('The command with background jobs', () => {
  it('starts one in the background, shows, follows, lists and deletes it', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { MODEL_API_MAX_CONCURRENT: '1' });
    const env = envFor(service);
    const { code, stdout } = await runCommand(['ask', '--background', 'Take your time'], { env });
    const id = stdout.trim();
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^j[\w-]{24}\n$/)]);
    const second = JSON.parse((await runCommand(['ask', '-b', 'Me, too', '--json'], { env })).stdout);
    expect((await runCommand(['jobs'], { env })).stdout).toMatch(new RegExp(`${id} +ask, background +running`));
    expect((await runCommand(['jobs', 'show', second.job_id], { env })).stdout).toMatch(/^status +queued, place 1$/m);
    expect(await runCommand(['jobs', 'cancel', second.job_id], { env })).toMatchObject({
      code: 0,
      stdout: 'cancelled\n',
    });
    const following = runCommand(['jobs', 'follow', id], { env });
    await gate.open();
    expect(await following).toMatchObject({ code: 0, stdout: 'Take your time\n' });
    expect((await runCommand(['jobs', 'show', id], { env })).stdout).toMatch(
      /^status +succeeded\n[\s\S]*\n\nTake your time\n$/m,
    );
    const cancelled = await runCommand(['jobs', 'follow', second.job_id], { env });
    expect([cancelled.code, cancelled.stderr]).toEqual([1, 'prompt-relay: the job was cancelled\n']);
    const { jobs } = { jobs: JSON.parse((await runCommand(['jobs', '--json'], { env })).stdout).background };
    expect(jobs).toMatchObject([
      { job_id: second.job_id, status: 'cancelled' },
      { job_id: id, status: 'succeeded' },
    ]);
    expect((await runCommand(['jobs', 'cancel', id], { env })).stdout).toBe('forgotten: it had ended\n');
    expect((await runCommand(['jobs', 'show', id], { env })).code).toBe(65);
  });

  it('cancels several jobs of all clients for an administrator, continues after a failure, and deletes no answer', async () => {
    await using keys = await writeNamedKeys();
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { ...keys.env, MODEL_API_MAX_CONCURRENT: '1' });
    const envOf = (name: KeyHolder) => ({ ...envFor(service), MODEL_API_KEY: keyOf(name) });
    const [alice, operator] = [envOf('alice'), envOf('operator')];
    const asking = runCommand(['ask', 'live'], { env: alice });
    const [, id = ''] = await until(async () => {
      return /^ +(\d+-\S{8}) +alice/m.exec((await runCommand(['jobs'], { env: operator })).stdout);
    }, 'a job that runs');
    const waits = (await runCommand(['ask', '-b', 'waits'], { env: alice })).stdout.trim();
    const all = await runCommand(['jobs', '--all'], { env: operator });
    expect(all.stdout).toMatch(
      new RegExp(`^all  2, 2 open\n[^]*\n +${waits} +key alice +ask, background +queued`, 'm'),
    );
    expect((await runCommand(['jobs', '--all'], { env: alice })).code).toBe(77);
    expect(await runCommand(['cancel', 'unknown', id, waits], { env: operator })).toEqual({
      code: 65,
      stdout: `${id}  cancelled\n${waits}  cancelled\n`,
      stderr: 'prompt-relay: unknown: not_found: no such job\n',
    });
    const asked = await asking;
    expect([asked.code, asked.stdout]).toEqual([77, '']);
    expect(asked.stderr).toContain('an administrator has ended the job');
    const followed = await runCommand(['jobs', 'follow', waits], { env: alice });
    expect([followed.code, followed.stderr]).toEqual([1, 'prompt-relay: the job was cancelled by an administrator\n']);
    await gate.open();
    const done = (await runCommand(['ask', '-b', 'done'], { env: alice })).stdout.trim();
    await runCommand(['jobs', 'follow', done], { env: alice });
    for (const env of [operator, alice]) {
      const { code, stdout } = await runCommand(['cancel', done], { env });
      expect([code, stdout]).toEqual([0, `${done}  succeeded: it had ended\n`]);
    }
    const json = await runCommand(['cancel', '--json', done], { env: alice });
    expect(JSON.parse(json.stdout)).toMatchObject({ job_id: done, status: 'succeeded', deleted: false });
    expect((await runCommand(['cancel'])).code).toBe(usage);
  });

  it('continues to follow a job when a worker is replaced', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command);
    const env = envFor(service);
    const id = (await runCommand(['ask', '-b', 'Hello'], { env })).stdout.trim();
    const following = runCommand(['jobs', 'follow', id], { env });
    await service.log('http_request_completed', ({ path }) => path === '/ask');
    service.process.kill('SIGHUP');
    await service.log('reload_complete');
    await gate.open();
    expect(await following).toMatchObject({ code: 0, stdout: 'Hello\n' });
  });

  it('explains its usage', async () => {
    for (const words of [['stop', 'x'], ['show'], ['follow', '']]) {
      expect((await runCommand(['jobs', ...words])).code).toBe(usage);
    }
  });
});
