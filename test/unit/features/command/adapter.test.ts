import { commandAdapter, createCommand } from '../../../../src/features/command/adapter.js';
import { commandModel } from '../../../../src/features/command/models.js';
import {
  type DecoderEvent,
  type Exit,
  type LaunchOptions,
  type ProgramVersion,
  plainLaunch,
  unknownUsage,
} from '../../../../src/primary/cli/contract/adapter.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

function adapterOf(
  command: readonly [string, ...string[]],
  extraArgs: readonly string[] = [],
  defaultModel: string | null = null,
) {
  return commandAdapter(command, { extraArgs, ...commandModel(command, extraArgs, defaultModel) });
}

/** Returns the version. The adapter must not consult the program: an unknown program may misinterpret its arguments. */
function versionOf(...parts: Parameters<typeof adapterOf>): Promise<ProgramVersion> {
  return adapterOf(...parts).learn(() => Promise.reject(new Error('was consulted')));
}

async function argsOf(
  launch: Partial<LaunchOptions>,
  ...parts: Parameters<typeof adapterOf>
): Promise<readonly string[]> {
  const plan = (await versionOf(...parts)).plan({ ...plainLaunch(null), ...launch }, '/private/system');
  expect(plan.files).toEqual([]);
  return plan.args;
}

async function exitEvents(exit: Partial<Exit>): Promise<readonly DecoderEvent[]> {
  const decoder = (await versionOf(['llm'])).protocol().decoder;
  Array.from(decoder.read('an answer'));
  return [...decoder.exit({ code: null, signal: null, stderr: '', ...exit })];
}

const history = [
  { role: 'user', text: 'Hi' },
  { role: 'assistant', text: 'Hello' },
] as const;

describe('The command adapter', () => {
  it('starts the program with its arguments, then the extra ones', async () => {
    expect(adapterOf(['/opt/llm', '-q']).command).toEqual(['/opt/llm']);
    expect(await argsOf({}, ['/opt/llm', '-q'], ['--more'])).toEqual(['-q', '--more']);
  });

  it('replaces {model} wherever it occurs, unchanged otherwise', async () => {
    const command = ['llm', '-m', '{model}', '--tag={model}/{model}'] as const;
    expect(await argsOf({ model: 'a:7b' }, command)).toEqual(['-m', 'a:7b', '--tag=a:7b/a:7b']);
    expect(await argsOf({ model: null }, command, [], 'b')).toEqual(['-m', 'b', '--tag=b/b']);
    expect(await argsOf({ model: 'c' }, ['llm'], ['-m', '{model}'], 'b')).toEqual(['-m', 'c']);
  });

  it('never puts the prompt or the system text into the arguments', async () => {
    expect(await argsOf({ system: 'secret' }, ['llm', '{system}'])).toEqual(['{system}']);
  });

  it('offers the one model it has, or any if the command takes a model', () => {
    expect(adapterOf(['/opt/llm']).models).toEqual(['llm']);
    expect(adapterOf(['/opt/llm'], [], 'gpt').models).toEqual(['gpt']);
    expect(adapterOf(['/opt/llm', '-m{model}'], [], 'gpt').models).toBeNull();
    expect(adapterOf(['/opt/llm'], ['-m', '{model}'], 'gpt').models).toBeNull();
  });

  it('writes a single prompt byte for byte and closes stdin', async () => {
    const { write } = (await versionOf(['llm'])).protocol().writer;
    const text = ' -x\n/cost "🚀" ';
    expect(write({ ...plainLaunch(null), text, history: [] }, 1)).toEqual({ text, stdin: 'end' });
  });

  it('writes a longer conversation as a transcript with the roles', async () => {
    const { write } = (await versionOf(['llm'])).protocol().writer;
    const { text } = write({ ...plainLaunch(null), text: 'And?', system: 'Be brief.', history }, 1);
    const [, ...said] = text.split('\n\n');
    expect(said).toEqual([
      '[turn-11 system]\nBe brief.',
      '[turn-11 user]\nHi',
      '[turn-11 assistant]\nHello',
      '[turn-11 user]\nAnd?',
      expect.stringMatching(/^\[turn-11 end\]/),
      '',
    ]);
  });

  it('uses the output of the program as the answer, without trailing newlines', async () => {
    const decoder = (await versionOf(['llm'])).protocol().decoder;
    const read = ['\u001b[1ma\n', '\n{"type":"end"}\u001b[', '0m\r\n\n'].flatMap((chunk) => [...decoder.read(chunk)]);
    expect([...read, ...decoder.exit({ code: 0, signal: null, stderr: '' })]).toEqual([
      { type: 'text-delta', text: 'a' },
      { type: 'text-delta', text: '\n\n{"type":"end"}' },
      { type: 'turn-end', text: null, model: null, usage: unknownUsage },
    ]);
  });

  it('treats an answer of only whitespace as empty', async () => {
    const decoder = (await versionOf(['llm'])).protocol().decoder;
    Array.from(decoder.read(' \n\n'));
    expect([...decoder.exit({ code: 0, signal: null, stderr: 'no model\n' })]).toEqual([
      {
        type: 'turn-failed',
        reason: 'empty_answer',
        message: 'the model CLI exited with 0 without an answer',
        stderr: 'no model',
      },
    ]);
  });

  it('succeeds with exit code 0, whatever is on stderr', async () => {
    expect(await exitEvents({ code: 0, stderr: 'warning: x' })).toEqual([
      { type: 'turn-end', text: null, model: null, usage: unknownUsage },
    ]);
  });

  it.each<[Partial<Exit>, string, object]>([
    [{ code: 3 }, 'the model CLI exited with code 3', {}],
    [
      { code: 1, stderr: 'Traceback\n  File\nError: no model\n\n' },
      'the model CLI exited with code 1',
      { stderr: 'Traceback\n  File\nError: no model' },
    ],
    [{ signal: 'SIGSEGV' }, 'the model CLI was ended by SIGSEGV', {}],
    [{ signal: 'SIGKILL', stderr: 'oom' }, 'the model CLI was ended by SIGKILL', { stderr: 'oom' }],
  ])('fails otherwise, with stderr beside the message: %j', async (exit, message, more) => {
    expect(await exitEvents(exit)).toEqual([{ type: 'turn-failed', reason: 'crashed', message, ...more }]);
  });
});

describe('The adapter of the configured program', () => {
  it('offers its one model, or any if it takes a model', async () => {
    const modelsOf = async (text: string, more: Readonly<Record<string, string>> = {}) => {
      const config = await loadConfig({ MODEL_API_CLI_COMMAND: text, ...more }, async () => '');
      const settings = { config, env: {}, givenVariables: {}, clock: new FakeClock() };
      return (await createCommand({ name: 'command', kind: 'command', command: config.cliCommand }, settings)).models;
    };
    expect(await modelsOf('/opt/ollama run')).toEqual(['ollama']);
    expect(await modelsOf('/opt/ollama run', { MODEL_API_DEFAULT_MODEL: 'llama' })).toEqual(['llama']);
    expect(await modelsOf('/opt/ollama run {model}')).toBeNull();
  });
});
