import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { allPids, readOfProcess } from '../../support/processes/processes.js';
import { fixture, type Service, script, startWithProgram, startWithPrograms } from '../../support/service/service.js';

interface Self {
  readonly argv: string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly files: string[];
  readonly mode: number;
  readonly uid: number;
  readonly ownUid: number;
}

async function selfOf(service: Service): Promise<Self> {
  const { status, text, body } = await service.post('/ask', { prompt: 'hello' }, ofService);
  if (status !== 200) throw new Error(text);
  return JSON.parse(body.response as string) as Self;
}

/** Returns the arguments and environments of all processes. */
function visibleText(): string {
  return allPids()
    .flatMap((pid) => [readOfProcess(pid, 'cmdline'), readOfProcess(pid, 'environ')])
    .join('\n');
}

const ofService = { 'x-api-key': 'key-of-the-service' };
const words = `two\\ words "double quoted" 'single $HOME' "" $HOME $(id) \`id\` * ~ ; | > file a"b"'c'`;

/** The program answers with what it sees of itself. */
const tellsItself = shared(() =>
  startWithProgram(`${fixture('tells-itself.js')} ${words}`, {
    MODEL_API_CLI_ARGS: '--extra "of the operator"',
    MODEL_API_KEY: ofService['x-api-key'],
    MODEL_API_CLI_ENV: 'FURTHER,ABSENT',
    MODEL_CODE_OAUTH_TOKEN: 'token-of-another-cli',
    FURTHER: 'allowed',
    OTHER: 'not allowed',
    NODE_OPTIONS: '--no-deprecation',
    LANG: 'C.UTF-8',
    TZ: 'Europe/Vienna',
  }),
);
const folder = shared(temporaryFolder);
/** The model `bytes` answers with the bytes of its input in hexadecimal form, and `fills` fills its working directory. */
const several = shared(async () =>
  startWithPrograms(
    {
      bytes: `perl -0777 -ne 'print unpack "H*", $_'`,
      fills: `sh -c 'mkdir -p a/b; echo x > a/b/c; ln -s / a/d; exec cat'`,
      forever: script('forever.pl'),
    },
    { TMPDIR: (await folder()).path, MODEL_API_TIMEOUT: '3' },
  ),
);

describe('The text of a request', () => {
  it('is in no argument and no environment of any process while its job runs, and in no log record', async () => {
    const service = await several();
    const secret = `canary-${Math.random().toString(36).slice(2)}`;
    const texts = { prompt: `the prompt ${secret}`, system: `the system ${secret}` };
    const answer = service.post('/ask', { ...texts, model: 'forever' });
    await untilJobs(service, 1, 0);
    const visible = await until(() => {
      const text = visibleText();
      return text.includes('forever.pl') ? text : null;
    }, 'the program to run');
    expect(visible).not.toContain(secret);
    expect((await answer).text).not.toContain(secret);
    expect(JSON.stringify(service.logs)).not.toContain(secret);
  });

  it.each(['$(touch canary); `touch canary` > canary & | canary', '-rf --help \'"\\', '%s %n\u0001\u001b[31m\r\n'])(
    'reaches the program unchanged to the byte: %j',
    async (prompt) => {
      const service = await several();
      const { body } = await service.post('/ask', { prompt, model: 'bytes' });
      expect(Buffer.from(String(body.response), 'hex').toString()).toBe(prompt);
    },
  );
});

describe('The command line', () => {
  it('is split as a shell does, and nothing in it is expanded', async () => {
    const service = await tellsItself();
    const { argv } = await selfOf(service);
    const split = ['two words', 'double quoted', 'single $HOME', '', '$HOME', '$(id)', '`id`', '*', '~', ';', '|', '>'];
    expect(argv).toEqual([...split, 'file', 'abc', '--extra', 'of the operator']);
  });
});

describe('The environment of a model CLI', () => {
  it('contains only the allowed variables and the cookie', async () => {
    const service = await tellsItself();
    const { env } = await selfOf(service);
    expect(env).toEqual({
      PATH: process.env.PATH,
      HOME: service.home,
      LANG: 'C.UTF-8',
      TZ: 'Europe/Vienna',
      FURTHER: 'allowed',
      TMPDIR: expect.stringMatching(/\/prompt-relay-[\d.]+-\w{6}\/\d+$/),
      PROMPT_RELAY_JOB: expect.stringMatching(new RegExp(`^${service.pid}\\.`)),
    });
  });
});

describe('The working directory of a model CLI', () => {
  it('is empty, private, used by one job, and removed afterwards', async () => {
    const service = await tellsItself();
    const [first, second] = [await selfOf(service), await selfOf(service)];
    for (const { files, mode, uid, ownUid } of [first, second]) {
      expect({ files, mode, uid }).toEqual({ files: [], mode: 0o700, uid: ownUid });
    }
    expect(first.cwd).not.toBe(second.cwd);
    await recovers(service);
    const [runtimeDirectory] = (await readdir(service.home)).filter((name) => name.startsWith('prompt-relay-'));
    expect(await readdir(join(service.home, runtimeDirectory as string))).toEqual(['work']);
  });

  it('is removed afterwards with any content, and with all others when the service ends', async () => {
    const service = await several(); // the last test that uses it
    expect((await service.post('/ask', { prompt: 'hello', model: 'fills' })).status).toBe(200);
    await recovers(service);
    const { path } = await folder();
    expect(await readdir(path)).toHaveLength(2);
    expect(await service.stop()).toBe(0);
    expect(await readdir(path)).toEqual([]);
    await expect(readdir(service.home)).rejects.toThrow('ENOENT');
  });
});
