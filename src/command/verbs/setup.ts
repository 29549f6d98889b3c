import { constants } from 'node:fs';
import { copyFile, mkdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { modelList } from '../../shared/api/models.js';
import { fileFault } from '../../shared/text/system-error.js';
import type { Client } from '../base/client.js';
import { type ClientProgram, clientPrograms, SettingsError, type SetupTarget } from '../base/client-programs.js';
import { addressFlags, type Command, clientFor, modelFlag } from '../base/command.js';
import { CommandError, exitCodes, usageError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { writeUserFile } from '../base/user-file.js';
import { callerAt } from './login.js';

const names = Object.keys(clientPrograms);

export const setup: Command = {
  name: 'setup',
  synopsis: '<program>',
  summary: 'make a coding agent use the service',
  flags: {
    ...modelFlag,
    print: { type: 'boolean', description: 'print the settings, and change no file' },
    yes: { type: 'boolean', short: 'y', description: 'change the file without a question' },
    ...addressFlags,
  },
  maxPositionals: 1,
  words: names,
  notes: [
    `The programs are ${names.join(', ')}. The command adds the service to the settings of the program, and keeps a copy of the old file. It asks first. Without --model, the program uses the default model of the service.`,
    'Except for codex, the settings contain your API key: a new file can be read only by you.',
  ],
  examples: ['prompt-relay setup claude-code', 'prompt-relay setup codex --print', 'prompt-relay setup aider -m opus'],
  run: async (args, context) => {
    const [name = ''] = args.positionals;
    const program = Object.entries<ClientProgram>(clientPrograms).find(([known]) => known === name)?.[1];
    if (program === undefined) throw usageError('setup', `name one of ${names.join(', ')}`);
    const client = await clientFor(args, context);
    if (client.url.startsWith('unix:')) throw usageError('setup', 'the programs cannot use a Unix socket: name a URL');
    await callerAt(client); // `GET /models` needs no key
    const { url, key } = client;
    const target = { url, key, model: await modelOf(client, args.value('model')) };
    const path = program.path(context.settingsFolders());
    if (args.has('print')) await context.terminal.write(program.addService('', target));
    else await change(path, program, target, args.has('yes'), context.terminal);
    if (args.has('print')) context.terminal.message(`Add these settings to ${path}.`);
    context.terminal.message(program.nextStep(target));
    return exitCodes.ok;
  },
};

/** Returns a model that the service has: the named one, or else the default. */
async function modelOf(client: Client, named: string | undefined): Promise<string> {
  const { models } = await client.get('/models', modelList);
  if (named !== undefined && models.some(({ id }) => id === named)) return named;
  if (named !== undefined) {
    throw usageError('setup', `the service has no model ${named}: "prompt-relay models" lists its models`);
  }
  return models.find((model) => model.default)?.id ?? 'default';
}

async function change(
  path: string,
  program: ClientProgram,
  target: SetupTarget,
  isSure: boolean,
  terminal: Terminal,
): Promise<void> {
  try {
    const file = await realpath(path).catch(ifMissing(path)); // a symbolic link stays one
    const before = await readFile(file, 'utf8').catch(ifMissing(''));
    const after = program.addService(before, target);
    if (after === before) return void (await terminal.writeLine(`${path} already has these settings.`));
    if (!isSure) await ask(path, before === '' ? 'Create' : 'Change', terminal);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    const copy = before === '' ? null : await keepCopy(file);
    await writeUserFile(file, after, copy === null ? undefined : (await stat(file)).mode & 0o777);
    await terminal.writeLine(`The settings are in ${path}.`);
    if (copy !== null) terminal.message(`A copy of the old file is in ${copy}.`);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (!(error instanceof SettingsError)) {
      throw new CommandError(exitCodes.output, `setup: ${fileFault(path, error as NodeJS.ErrnoException)}`);
    }
    const wayOut = 'add the settings of "--print" yourself';
    throw new CommandError(exitCodes.config, `setup: ${path} was not changed, because ${error.message}: ${wayOut}`);
  }
}

function ifMissing<T>(value: T) {
  return (error: NodeJS.ErrnoException): T => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };
}

/** Throws a CommandError unless the user says yes. */
async function ask(path: string, verb: 'Create' | 'Change', terminal: Terminal): Promise<void> {
  if (!terminal.isStdinTty) throw usageError('setup', 'without a terminal, use --yes or --print');
  const answer = await terminal.readAnswer(`${verb} ${path}? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError(exitCodes.interrupted, 'setup: nothing was changed');
}

/** Copies the file beside itself under the first free name. Resolves with the path of the copy. */
async function keepCopy(file: string): Promise<string> {
  for (let number = 1; ; number++) {
    const copy = `${file}.before-relay-${number}`;
    const isCopied = await copyFile(file, copy, constants.COPYFILE_EXCL).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    if (isCopied) return copy;
  }
}
