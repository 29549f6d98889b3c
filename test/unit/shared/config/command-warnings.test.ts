import { features } from '../../../../src/features.js';
import { shellWords } from '../../../../src/shared/config/clis.js';
import { bufferedPrograms, unshelled } from '../../../../src/shared/config/command-warnings.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

function curesOf(line: string): string[] {
  return bufferedPrograms(shellWords(line), {}).map((warning) => warning.replace(/ buffers .* streamed:/, ':'));
}

const ofPython = 'add -u, or set PYTHONUNBUFFERED=1 and name it in MODEL_API_CLI_ENV';

describe('A program that buffers its output to a pipe', () => {
  it.each([
    ['/usr/bin/python3.12 model.py', `python3.12: ${ofPython}`],
    ['python model.py -u', `python: ${ofPython}`],
    ['stdbuf -oL python3 model.py', `python3: ${ofPython}`],
    ['env A=b nice -n 10 timeout 60s python3 model.py', `python3: ${ofPython}`],
    ["sed -e 's/a/b/'", 'sed: add -u'],
    ['egrep a', 'egrep: add --line-buffered'],
    ['jq -r .text', 'jq: add --unbuffered'],
    ["gawk '{print $1}'", 'gawk: call fflush() after each print'],
    ['tr a b', 'tr: put stdbuf -oL in front'],
  ])('is detected: %s', (line, cure) => {
    expect(curesOf(line)).toEqual([cure]);
  });

  it('is detected once per program in the script of a shell', () => {
    expect(curesOf(`bash -lc 'llm | sed s/a/b/ | sed s/c/d/; python3 x'`)).toEqual([
      'sed: add -u',
      `python3: ${ofPython}`,
    ]);
  });

  it.each([
    ['python3 -u model.py'],
    ['python3 -Bu model.py'],
    ['env PYTHONUNBUFFERED=1 python3 model.py'],
    ['sed -u s/a/b/'],
    ['sed -nu s/a/b/'],
    ['grep --line-buffered a'],
    ['jq --unbuffered .'],
    ["awk '{print; fflush()}'"],
    ['mawk -W interactive 1'],
    ['stdbuf -oL cut -c1'],
    ['ollama run {model}'],
    ['cat'],
    ['sh script.sh'],
    ["sh -c 'llm | tee log'"],
    [''],
  ])('is not reported for an unbuffered program: %s', (line) => {
    expect(curesOf(line)).toEqual([]);
  });
});

const name = 'MODEL_API_CLI_COMMAND';

async function warningsOf(env: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const read = () => Promise.reject(new Error('there is no file'));
  const { warnings } = await loadConfig(env, read, undefined, features);
  return warnings;
}

describe('A command line with shell syntax', () => {
  it.each([
    ['llm | tee log', '|'],
    ['a || b && c; d & e', '|| && ; &'],
    ['llm > out 2>&1 < in >> more', '> 2>&1 < >>'],
    [`$HOME/bin/llm "$HOME" $\{X} $(date) \`date\``, '$HOME ${ $( `'],
    ['llm ~/x *.txt', '~ *'],
    ['llm {a,b}', '{a,b}'],
  ])('causes a warning: %s', (line, signs) => {
    const verb = signs.includes(' ') ? 'mean' : 'means';
    const how = "quote the argument, or call a shell, as in sh -c '…'";
    expect(unshelled(name, line)).toEqual([`${name}: ${signs} ${verb} nothing without a shell: ${how}`]);
  });

  it.each([
    [`sh -c 'llm | sed "s/a/$B/" > out'`],
    ['ollama run {model}'],
    ['claude --model opus[1m] a~b "a | b; ~ *" \\| \\$HOME "\\$HOME"'],
    ["awk '{print $1}'"],
    ['curl http://127.0.0.1:8080/v1 --data x=y'],
    [''],
  ])('causes no warning: %s', (line) => {
    expect(unshelled(name, line)).toEqual([]);
  });

  it('sets no variable, and the warning does not show its value', () => {
    expect(unshelled(name, ' API_KEY=secret llm')).toEqual([
      `${name}: API_KEY=… in front is run as a program: put env before it`,
    ]);
  });

  it('causes a warning at the start, also for the extra arguments', async () => {
    const env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'llm | cat', MODEL_API_CLI_ARGS: '> out' };
    expect(await warningsOf(env)).toEqual([
      expect.stringContaining(`${name}: | means nothing`),
      expect.stringContaining('MODEL_API_CLI_ARGS: > means nothing'),
    ]);
    expect(await warningsOf({ MODEL_API_CLI_ARGS: '> out' })).toEqual([]);
    expect(await warningsOf({ MODEL_API_CLIS: 'demo,local=command:sed s/a/b/ > out' })).toEqual([
      expect.stringContaining('MODEL_API_CLIS: > means nothing'),
      expect.stringContaining('MODEL_API_CLIS: sed buffers its output'),
    ]);
  });
});

it('A command line whose program buffers its output causes a warning with the remedy, unless that is applied', async () => {
  const command = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'python3', MODEL_API_CLI_ARGS: 'model.py' };
  const cure = 'add -u, or set PYTHONUNBUFFERED=1 and name it in MODEL_API_CLI_ENV';
  const warning = `${name}: python3 buffers its output to a pipe until it ends, so answers would not be streamed: ${cure}`;
  expect(await warningsOf(command)).toEqual([warning]);
  expect(await warningsOf({ ...command, PYTHONUNBUFFERED: '1' })).toEqual([warning]);
  expect(await warningsOf({ ...command, PYTHONUNBUFFERED: '1', MODEL_API_CLI_ENV: 'PYTHONUNBUFFERED' })).toEqual([]);
  expect(await warningsOf({ ...command, MODEL_API_CLI_ARGS: '-u model.py' })).toEqual([]);
});
