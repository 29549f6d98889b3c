import { chmod, mkdir, readdir, readFile, realpath, stat, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { modelList } from '../../shared/api/models.js';
import { defaultModelName } from '../../shared/config/values.js';
import { fileFault } from '../../shared/text/system-error.js';
import type { Client } from '../base/client.js';
import {
  addService,
  type ClientProgram,
  clientPrograms,
  removeService,
  SettingsError,
  type SetupTarget,
  usesService,
} from '../base/client-programs.js';
import { alignColumns } from '../base/columns.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  clientFor,
  modelFlag,
} from '../base/command.js';
import { CommandError, exitCodes, usageError } from '../base/errors.js';
import { handPrograms } from '../base/hand-programs.js';
import type { Terminal } from '../base/terminal.js';
import { writeUserFile } from '../base/user-file.js';
import { callerAt } from './login.js';

const programs = new Map<string, ClientProgram>(Object.entries(clientPrograms));
const names = [...programs.keys(), ...handPrograms.keys()];

export const setup: Command = {
  name: 'setup',
  synopsis: '<program> | --list',
  summary: 'make a coding agent use the service',
  flags: {
    ...modelFlag,
    write: { type: 'boolean', short: 'w', description: 'change the file of the program' },
    undo: { type: 'boolean', description: 'show the settings without the service' },
    list: { type: 'boolean', short: 'l', description: 'show the programs, and which of them use the service' },
    ...addressFlags,
  },
  maxPositionals: 1,
  words: names,
  notes: [
    `The programs are ${names.join(', ')}. The command prints the settings with which a program uses the service. Without --model, this is the default model of the service. The key comes from --key, MODEL_API_KEY or "prompt-relay login".`,
    `--write works for ${[...programs.keys()].join(', ')}, whose settings are JSON. It adds the entries, and keeps a copy of the old file. The entries contain your API key: then only you can read the file and its copy. --undo --write removes these entries alone, restores the values that they have replaced, and removes copies that contain the entries.`,
  ],
  examples: [
    'prompt-relay setup codex',
    'prompt-relay setup claude-code -m opus --write',
    'prompt-relay setup claude-code --undo --write',
  ],
  run: async (args, context) => {
    const [name = ''] = args.positionals;
    const [program, byHand] = [programs.get(name), handPrograms.get(name)];
    if (args.has('list')) return list(args, context);
    const changesJson = args.has('undo') || args.has('write');
    if (program === undefined && (byHand === undefined || changesJson))
      throw usageError('setup', `name one of ${[...(changesJson ? programs.keys() : names)].join(', ')}`);
    if (program !== undefined && args.has('undo')) return undo(program, args, context);
    const target = await targetOf(args, context);
    if (program !== undefined) return add(program, target, args, context);
    await context.terminal.writeLines(byHand?.(target) ?? []);
    return exitCodes.ok;
  },
};

/** Returns what the settings must contain. Rejects if the service does not answer, or refuses the key. */
async function targetOf(args: CommandArguments, context: CommandContext): Promise<SetupTarget> {
  const client = await clientFor(args, context);
  if (client.url.startsWith('unix:')) throw usageError('setup', 'the programs cannot use a Unix socket: name a URL');
  await callerAt(client); // `GET /models` needs no key
  const { url, key } = client;
  return { url, key, model: await modelOf(client, args.value('model')) };
}

/**
 * Returns a model that the service has: the named one, or else the default. Programs assume wrong sizes for a model with
 * the name `default`, so another model replaces it.
 */
async function modelOf(client: Client, named: string | undefined): Promise<string> {
  const { models } = await client.get('/models', modelList);
  const real = models.filter(({ id }) => id !== defaultModelName);
  if (named !== undefined && (real.length === 0 || models.some(({ id }) => id === named))) return named;
  if (named !== undefined) {
    throw usageError('setup', `the service has no model ${named}: "prompt-relay models" lists its models`);
  }
  const chosen = real.find((model) => model.default) ?? real.find((model) => model.alias_of === undefined);
  if (chosen !== undefined) return chosen.id;
  throw usageError('setup', 'the service does not list its models now: name one with --model, or try again later');
}

async function add(
  program: ClientProgram,
  target: SetupTarget,
  args: CommandArguments,
  { terminal, settingsFolders }: CommandContext,
): Promise<number> {
  const path = program.path(settingsFolders());
  if (args.has('write')) await change(path, program, target, terminal);
  else {
    await terminal.writeText(addService(program, '', target));
    terminal.message(`Add these settings to ${path}, or let --write do it.`);
  }
  if (args.value('model') === undefined) terminal.message(`The model is ${target.model}; --model names another one.`);
  if (program.warning !== null) terminal.sentences(program.warning);
  terminal.message(program.nextStep(target));
  return exitCodes.ok;
}

function change(path: string, program: ClientProgram, target: SetupTarget, terminal: Terminal): Promise<void> {
  return withReasons(path, async () => {
    const { file, text: before, mode } = await readSettings(path);
    const after = addService(program, before, target);
    const ownMode = target.key === null ? mode : mode & ownerMode;
    const copies = await copiesOf(file);
    const open = await openCopies(copies); // an older version made them
    if (after === before && mode === ownMode && open.length === 0)
      return void (await terminal.writeLine(`${path} already has these settings.`));
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    for (const copy of open) await chmod(copy, 0o600);
    // An empty copy of a missing file prevents an undo from reading an older one.
    const keepsCopy = after !== before && (before !== '' || copies.length > 0);
    const copy = keepsCopy ? await keepCopy(file, before, copies) : null;
    await writeUserFile(file, after, ownMode);
    await terminal.writeLine(`The settings are in ${path}.`);
    if (copy !== null && before !== '') terminal.message(`A copy of the old file is in ${copy}.`);
    if (mode !== ownMode) terminal.message('Now only you can read the file, because it contains your API key.');
  });
}

async function undo(program: ClientProgram, args: CommandArguments, context: CommandContext): Promise<number> {
  const { terminal, settingsFolders } = context;
  const { url } = await clientFor(args, context);
  const path = program.path(settingsFolders());
  await withReasons(path, async () => {
    const { file, text, mode } = await readSettings(path);
    if (!usesService(program, text, url))
      throw new CommandError(exitCodes.config, `setup: ${path} does not name ${url}: --url names another service`);
    const paths = await copiesOf(file);
    const copies = await Promise.all(paths.map(async (each) => ({ path: each, text: await readFile(each, 'utf8') })));
    const before = copies.findLast((copy) => !usesService(program, copy.text, url))?.text ?? '';
    const remaining = removeService(program, text, before);
    if (!args.has('write')) {
      await terminal.writeText(remaining);
      const what = remaining === '' ? `Nothing of ${path}` : 'This';
      return terminal.message(`${what} remains if you add --write.`);
    }
    if (remaining === '') await unlink(file);
    else await writeUserFile(file, remaining, mode);
    await terminal.writeLine(
      remaining === '' ? `${path} contained nothing else and was removed.` : `${path} no longer names ${url}.`,
    );
    for (const copy of copies.filter((each) => usesService(program, each.text, url))) {
      await unlink(copy.path);
      terminal.message(`${copy.path} also named it and was removed.`);
    }
  });
  return exitCodes.ok;
}

async function list(args: CommandArguments, context: CommandContext): Promise<number> {
  const { url } = await clientFor(args, context);
  const folders = context.settingsFolders();
  const rows = [...programs].map(async ([name, program]) => {
    const path = program.path(folders);
    const state = await readSettings(path)
      .then(({ text }) => (text !== '' && usesService(program, text, url) ? `uses ${url}` : 'does not use it'))
      .catch((error: Error) => {
        const isKnown = error instanceof SettingsError || error instanceof CommandError;
        return `unknown: ${isKnown ? error.message : fileFault(path, error)}`;
      });
    return [name, state, path];
  });
  const byHand = [...handPrograms.keys()].map((name) => [name, 'by hand', `"prompt-relay setup ${name}" says how`]);
  await context.terminal.writeLines(alignColumns([...(await Promise.all(rows)), ...byHand]));
  return exitCodes.ok;
}

/** Calls `act`, and turns its errors into CommandErrors that name the path. */
async function withReasons(path: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (!(error instanceof SettingsError)) {
      throw new CommandError(exitCodes.output, `setup: ${fileFault(path, error as NodeJS.ErrnoException)}`);
    }
    const wayOut = 'add or remove the entries yourself';
    throw new CommandError(exitCodes.config, `setup: ${path} was not changed, because ${error.message}: ${wayOut}`);
  }
}

const ownerMode = 0o700;

interface ProgramFile {
  /** Path of the file without symbolic links. */
  readonly file: string;
  /** Empty if the file does not exist. */
  readonly text: string;
  readonly mode: number;
}

/** Reads the settings. Throws a CommandError if they belong to another user, whose file a new one would replace. */
async function readSettings(path: string): Promise<ProgramFile> {
  const file = await realpath(path).catch(ifMissing(path)); // a symbolic link stays one
  const stats = await stat(file).catch(ifMissing(null));
  if (stats === null) return { file, text: '', mode: 0o600 };
  if (stats.uid !== process.geteuid?.())
    throw new CommandError(
      exitCodes.notAllowed,
      `setup: ${path} belongs to another user: run the command as that user`,
    );
  return { file, text: await readFile(file, 'utf8'), mode: stats.mode & 0o777 };
}

function ifMissing<T>(value: T) {
  return (error: NodeJS.ErrnoException): T => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };
}

/** Resolves with the paths of the copies beside the file, the oldest first. */
async function copiesOf(file: string): Promise<string[]> {
  const prefix = `${basename(file)}.before-relay-`;
  const names = await readdir(dirname(file)).catch(ifMissing<string[]>([]));
  const found = names.filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)));
  return found.map((name) => join(dirname(file), name)).sort((a, b) => copyNumber(a) - copyNumber(b));
}

function copyNumber(path: string): number {
  return Number(path.split('-').at(-1));
}

/**
 * Writes the previous text of a file to a new copy beside it, whose number follows the highest one of `copies`. Only the
 * owner can read the copy. Resolves with its path.
 */
async function keepCopy(file: string, text: string, copies: readonly string[]): Promise<string> {
  const last = copies.at(-1);
  const copy = `${file}.before-relay-${last === undefined ? 1 : copyNumber(last) + 1}`;
  await writeFile(copy, text, { flag: 'wx', mode: 0o600 });
  return copy;
}

/** Returns the copies that other users can read. */
async function openCopies(copies: readonly string[]): Promise<string[]> {
  const modes = await Promise.all(copies.map(async (path) => ({ path, mode: (await stat(path)).mode })));
  return modes.filter(({ mode }) => (mode & 0o077) !== 0).map(({ path }) => path);
}
