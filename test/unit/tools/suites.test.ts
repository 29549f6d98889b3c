import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { failuresOf, missingLine, type Outcome, report, runBeside, secondTriesOf } from '../../run.js';
import { type JestSuite, jestConfig, suites } from '../../suites.js';
import { root } from '../../support/documents/sources.js';

type JestFile = Parameters<typeof failuresOf>[0][number];

const rows = Object.entries(suites);
const ofJest = rows.filter((row): row is [string, JestSuite] => 'files' in row[1]);
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const tests = readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
  .filter(({ name }) => name.endsWith('.test.ts'))
  .map(({ parentPath, name }) => relative(join(root, 'test'), join(parentPath, name)).replace(/\.test\.ts$/, ''));

function suitesOf(test: string): string[] {
  return ofJest.filter(([, { files }]) => new RegExp(`^(${files.join('|')})$`).test(test)).map(([name]) => name);
}

describe('The table of suites', () => {
  it('has each test file in a suite that is not on demand', () => {
    expect(tests.length).toBeGreaterThan(300);
    const forgotten = tests.filter((test) => suitesOf(test).every((name) => suites[name]?.isOnDemand));
    expect(forgotten).toEqual([]);
  });

  it('names only existing files', () => {
    for (const [name, { files, variants = [] }] of ofJest)
      for (const pattern of [...files, ...variants.flatMap((variant) => variant.files ?? [])])
        expect([name, pattern, tests.some((test) => new RegExp(`^(${pattern})$`).test(test))]).toContain(true);
  });

  it('has a script for each suite, and a line in CONTRIBUTING.md', () => {
    const contributing = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
    const scriptOf = (name: string) => (name === 'test' ? 'test' : `test:${name}`);
    for (const [name] of ofJest.filter((row) => row[0] !== 'mutation')) {
      expect(scripts[scriptOf(name)]).toBe(`npm run --silent suite -- ${name}`);
      expect(contributing).toMatch(new RegExp(`^npm (run )?${scriptOf(name)} +# `, 'm'));
    }
    const named = Object.keys(scripts).filter((script) => script.startsWith('test:'));
    expect(named.filter((script) => script !== 'test:all' && !(script.slice(5) in suites))).toEqual([]);
  });

  it('generates the configuration of Jest for a suite and for a part of it', () => {
    expect(jestConfig('faults')).toMatchObject({ testTimeout: 120_000, maxWorkers: 3 });
    expect(jestConfig('store')).toMatchObject({ testRegex: '/dist/test/(programs/store/.*)\\.test\\.js$' });
    expect(jestConfig('store', 'Node 22.23.3')).toMatchObject({
      testRegex: '/dist/test/(programs/store/sqlite)\\.test\\.js$',
    });
    expect(() => jestConfig('image')).toThrow('image');
  });
});

function outcomeOf(name: string, secondTries: readonly string[] = []): Outcome {
  return { name, isGreen: true, ms: 1000, secondTries, failures: [] };
}

describe('Parallel suites', () => {
  it('start in order, each as soon as enough processors are free', async () => {
    const seen: string[] = [];
    const ends = new Map<string, () => void>();
    const runOne = async (name: string) => {
      seen.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      return outcomeOf(name);
    };
    const table = [
      ['whole', { processors: 2 }],
      ['half', { processors: 1 }],
      ['other', { processors: 2 }],
      ['second', { processors: 1 }],
    ] as const;
    const ended = runBeside(table, 2, runOne);
    const end = async (name: string) => {
      ends.get(name)?.();
      await new Promise(setImmediate);
    };
    expect(seen).toEqual(['whole']);
    await end('whole');
    expect(seen).toEqual(['whole', 'half', 'second']);
    await end('second');
    expect(seen).toHaveLength(3);
    await end('half');
    expect(seen.at(-1)).toBe('other');
    await end('other');
    expect((await ended).map(({ name }) => name)).toEqual(['whole', 'second', 'half', 'other']);
  });

  it('run one by one if the machine has fewer processors than one of them needs', async () => {
    const table = [
      ['a', { processors: 2 }],
      ['b', { processors: 2 }],
    ] as const;
    const outcomes = await runBeside(table, 1, async (name) => outcomeOf(name));
    expect(outcomes.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

function failedFile(name: string, message: string, tests: JestFile['assertionResults']): JestFile {
  return { name: join(root, 'dist', 'test', name), status: 'failed', message, assertionResults: tests };
}

/** Message of a first try, as Jest writes it. */
const late =
  '    expect(received).toBe(expected)\n\n    Expected: \u001b[32m200\u001b[0m\n    Received: 503\n\n' +
  '      49 |   a();\n    > 50 |   b();\n         |   ^\n\n      at Service.ask (src/x.ts:1:2)\n      at Object.x (test/a.test.ts:50:7)\n';
const lateInOneLine = 'expect(received).toBe(expected) Expected: 200 Received: 503 at Object.x (test/a.test.ts:50:7)';

describe('The report of the runner', () => {
  it('has the message of each first try in one line, of tests that then passed and of those that failed again', () => {
    const tries = { invocations: 2, retryMessages: [late] };
    const file = failedFile('a.test.js', 'all messages', [
      { fullName: 'A door opens', status: 'passed', failureMessages: [], ...tries },
      { fullName: 'A door closes', status: 'failed', failureMessages: ['Error: open'], ...tries },
      { fullName: 'A door stays', status: 'passed', failureMessages: [], invocations: 1, retryMessages: [] },
    ]);
    expect(secondTriesOf([file])).toEqual([`A door opens: ${lateInOneLine}`]);
    expect(failuresOf([file])).toEqual([`A door closes\n    Error: open\n    at the first try: ${lateInOneLine}`]);
  });

  it('has the time of each suite, each failure, and at the end each second try with its number', () => {
    const secondTries = ['a test', 'another'];
    const failures = failuresOf([
      failedFile('a.test.js', 'all messages', [
        { fullName: 'A door opens', status: 'failed', failureMessages: ['\u001b[31mError: closed\u001b[0m\n\n  at x'] },
        { fullName: 'A door closes', status: 'passed', failureMessages: [] },
      ]),
      failedFile('b.test.js', 'Cannot find module', []),
    ]);
    const text = report([{ name: 'faults', isGreen: false, ms: 725_400, secondTries, failures }, outcomeOf('proxy')]);
    expect(text.trim().split('\n')).toEqual([
      ...['What each suite took:', '  faults         12:05  failed  2 at the second try', '  proxy           0:01'],
      ...['  faults, failed: A door opens', '    Error: closed', '      at x'],
      ...['  faults, failed: dist/test/b.test.js', '    Cannot find module'],
      ...['  faults, second try 1 of at most 1: a test', '  faults, second try 2 of at most 1: another'],
    ]);
  });
});

describe('The runner', () => {
  it.each([[[]], [['unknown']]])('lists the suites if no known one is named: %j', (args) => {
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'dist', 'test', 'run.js'), ...args], {
      encoding: 'utf8',
    });
    expect(status).toBe(2);
    expect(stderr).toContain(`Suites: ${rows.map(([name]) => name).join(', ')}`);
  });

  it('names all missing programs of a suite in one line, with their packages', () => {
    const suite = { ...(suites.test as JestSuite), needs: ['fish', 'zsh', 'promtool'] as const };
    expect(missingLine('test', suite, (program) => program === 'zsh')).toBe(
      'The suite test needs programs that are not on PATH: fish, promtool (apt-get install fish prometheus)',
    );
    expect(missingLine('test', suite, () => true)).toBeNull();
  });

  it('runs no test with CI set if a program is missing', () => {
    const args = [join(root, 'dist', 'test', 'run.js'), 'test'];
    const env = { PATH: '/nowhere', CI: 'true' };
    const { status, stderr, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^The suite test needs programs that are not on PATH: curl, fish, .* \(apt-get install curl fish .*\)\n$/,
    );
  });

  it('lists the packages of missing programs, each once', () => {
    const args = [join(root, 'dist', 'test', 'run.js'), 'missing'];
    const { stdout } = spawnSync(process.execPath, args, { env: { PATH: '/nowhere' }, encoding: 'utf8' });
    const lines = stdout.trim().split('\n');
    expect(lines).toEqual(expect.arrayContaining(['prometheus', 'strace']));
    expect(new Set(lines).size).toBe(lines.length);
  });
});
