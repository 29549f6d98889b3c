import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { commandProgram } from '../../support/clients/command.js';
import { commandsOf, type Snippet, snippetsFor, snippetsOf } from '../../support/documents/snippets.js';
import { type Service, startService, startWithProgram } from '../../support/service/service.js';

const run = promisify(execFile);
const documentedUrl = 'http://127.0.0.1:5051';
const key = '0123456789abcdefghijklmnop';
const snippets = snippetsFor('service/system/snippets');

function ofPage(page: string): Snippet[] {
  return snippets.filter((snippet) => snippet.page === page);
}

/** Fields that differ between runs. Tokens are only estimated while the machine is busy. */
const volatile = /^(request_id|queue_ms|duration_ms|tokens_used|conversation_id|job_id|\w+_at)$/;

/** Returns the body or the events of a stream without volatile fields. In a page, `…` replaces a part of a text. */
function withoutVolatile(output: string): unknown {
  const bodies = output.startsWith('{')
    ? [output]
    : [...output.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data);
  const shown = (value: unknown) =>
    typeof value === 'string' && value.includes('…') ? expect.stringMatching(patternOf(value)) : value;
  return bodies.map((json) => JSON.parse(json, (name, value) => (volatile.test(name) ? undefined : shown(value))));
}

function patternOf(text: string): RegExp {
  const parts = text.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`);
}

/** Returns the commands of a session in order, each with the output that the page shows. */
function sessionOf({ code }: Snippet): (readonly [command: string, output: string])[] {
  const parts = code.split(/^\$ /m).slice(1);
  return parts.map((part) => {
    const [command = '', ...output] = part.split('\n');
    return [command, output.join('\n').trim()];
  });
}

describe('The examples of docs/api.md', () => {
  const examples = ofPage('docs/api.md').flatMap(sessionOf);
  let service: Service;
  const ids = new Map<string, string>();

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  it('are all found', () => {
    expect(examples).toHaveLength(9);
  });

  it.each(examples)('print the documented answer: %s', async (command, output) => {
    const known = [...ids].reduce((text, [shown, real]) => text.replaceAll(shown, real), command);
    const call = () => run('bash', ['-c', known.replaceAll(documentedUrl, service.url)]);
    const whenOver = ({ stdout: body }: { readonly stdout: string }) => (/"status":"running"/.test(body) ? null : body);
    // The job may still run at first.
    const stdout = await until(async () => whenOver(await call()), 'the answer of a job');
    if (output !== '') expect(withoutVolatile(stdout)).toEqual(withoutVolatile(output));
    else expect(JSON.parse(stdout)).toMatchObject({ success: true });
    for (const name of ['conversation_id', 'job_id']) {
      const [shown, real] = [output, stdout].map((text) => new RegExp(`"${name}":"([^"]+)"`).exec(text)?.[1]);
      if (shown !== undefined && real !== undefined) ids.set(shown, real);
    }
  });
});

describe('The requests of the README', () => {
  const questions = snippetsOf('README.md')
    .flatMap(commandsOf)
    .filter((command) => command.startsWith('curl '));
  let service: Service;

  beforeAll(async () => {
    service = await startWithProgram('cat'); // no demo: its only model has another name than those of the demo
  });
  afterAll(() => service.stop());

  it('are all found', () => {
    expect(questions.map((command) => new URL(/http\S+/.exec(command)?.[0] ?? '').pathname)).toEqual([
      '/ask',
      '/v1/chat/completions',
    ]);
  });

  it.each(questions)('are answered with any model CLI: %s', async (command) => {
    const { stdout } = await run('bash', ['-c', `${command.replaceAll(documentedUrl, service.url)} -w '%{http_code}'`]);
    expect(stdout).toMatch(/Hello, my name is Ada.*200$/);
  });
});

/** Returns the first word of each line. Of a key and its digest, only the prefix remains. */
function beginningsOf(text: string): string[] {
  return text.split('\n').map((line) => line.replace(/ .*/, '').replace(/^(pr_|\w+:sha256:).*/, '$1'));
}

/** Stand-ins for programs of a service under systemd. */
const standIns: Readonly<Record<string, string>> = {
  'prompt-relay': `exec '${process.execPath}' '${commandProgram}' "$@"`,
  sudo: 'exec "$@"',
  journalctl: 'cat "$LOG"',
};

describe('A service with keys and a shell', () => {
  let service: Service;
  let folder: TemporaryFolder;

  beforeAll(async () => {
    folder = await temporaryFolder();
    await mkdir(join(folder.path, 'bin'));
    await mkdir(join(folder.path, 'home', '.zfunc'), { recursive: true });
    await mkdir(join(folder.path, 'home', '.config', 'fish', 'completions'), { recursive: true });
    for (const [name, text] of Object.entries(standIns)) {
      await writeFile(join(folder.path, 'bin', name), `#!/bin/sh\n${text}\n`);
      await chmod(join(folder.path, 'bin', name), 0o755);
    }
    await writeFile(join(folder.path, 'api_key'), `# keys\nada ${key}\n`);
    service = await startService({ env: { MODEL_API_KEY_FILE: join(folder.path, 'api_key') } });
    await service.post('/ask', { prompt: 'Hello' }, { 'x-api-key': key });
  });
  afterAll(async () => {
    await service?.stop();
    await folder?.[Symbol.asyncDispose]();
  });

  /** Rejects if a command fails. */
  async function shell(commands: string, settings = folder.path): Promise<string> {
    const log = join(folder.path, 'log');
    const records = [...service.logs]; // more may come while the file is written
    await writeFile(log, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    const known = commands
      .replaceAll(documentedUrl, service.url)
      .replaceAll(/\b20\d\d-07-01\b/g, '2099-07-01') // the end of a key
      .replaceAll('/etc/prompt-relay', settings)
      .replaceAll('<REQUEST_ID>', String(records.findLast(({ request_id: id }) => id !== undefined)?.request_id));
    const { stdout } = await run('bash', ['-o', 'pipefail', '-c', known], {
      env: {
        PATH: `${join(folder.path, 'bin')}:${process.env.PATH}`,
        HOME: join(folder.path, 'home'),
        LOG: log,
        MODEL_API_PORT: String(service.port),
        MODEL_API_KEY: key,
      },
    });
    return stdout.trim();
  }

  const ofOperations = ofPage('docs/operations.md').flatMap(commandsOf);
  it.each(ofOperations.slice(1).map((command) => [command]))('answers an operator: %s', async (command) => {
    const [setting] = ofOperations;
    const output = await shell(`unset MODEL_API_KEY\n${setting}\n${command}`);
    const records = output.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records.length).toBeGreaterThan(0);
    for (const record of records) expect(record).not.toHaveProperty('error');
  });

  /** Creates a folder of settings with a keys file. It contains the key `ada` unless the commands add it. */
  async function settingsFor(code: string): Promise<string> {
    const path = await mkdtemp(join(folder.path, 'settings-'));
    const line = code.includes('keys add ada') ? '' : `ada:sha256:${'0'.repeat(64)}\n`;
    await writeFile(join(path, 'keys'), line, { mode: 0o600 });
    return path;
  }

  const isSession = ({ language }: Snippet) => language === 'console';
  const others = [...ofPage('docs/command.md'), ...ofPage('docs/clients.md'), ...ofPage('docs/tasks.md')];
  it('has documented sessions and scripts to run', () => {
    expect(others.filter(isSession).length).toBeGreaterThan(4);
    expect(others.filter((snippet) => !isSession(snippet)).length).toBeGreaterThan(3);
  });

  it.each(others.filter(isSession).map((each) => [each.code, each] as const))(
    'shows what %s',
    async (code, snippet) => {
      const settings = await settingsFor(code);
      for (const [command, output] of sessionOf(snippet)) {
        if (command.includes('< report.txt')) continue; // a file that the reader has
        const [shown = [], seen = []] = [output, await shell(`exec 2>&1\n${command}`, settings)].map(beginningsOf);
        expect([command, seen]).toEqual([command, expect.arrayContaining([shown[0]])]);
        if (command.includes('echo $?')) expect(seen.at(-1)).toBe(shown.at(-1));
      }
    },
  );

  it.each(others.filter((snippet) => !isSession(snippet)).map(({ code }) => [code]))('runs %s', async (code) => {
    await shell(`set -e\n${code}`, await settingsFor(code));
    for (const [, file = ''] of code.matchAll(/> ~\/(\S+)/g)) {
      expect((await stat(join(folder.path, 'home', file))).size).toBeGreaterThan(100);
    }
  });
});
