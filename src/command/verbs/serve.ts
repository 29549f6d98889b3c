import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import type { CheckReport, SetupReport, TrialAnswer } from '../../shared/api/setup.js';
import { ConfigFault, type Environment } from '../../shared/config/config.js';
import { type VariableName, variables } from '../../shared/config/variables.js';
import { formatCount, formatDuration, formatNumber, labelledRows, shellWord } from '../../shared/text/format.js';
import type { Paint } from '../../shared/text/paint.js';
import { fileFault } from '../../shared/text/system-error.js';
import { type Command, type CommandArguments, type Flag, jsonFlag } from '../base/command.js';
import { CommandError, exitCodes, usageError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import {
  type ForeignSettings,
  faultsAsWarnings,
  readEnvFile,
  settingsOfUnit,
  type UnitHost,
} from '../base/unit-environment.js';
import { cliKinds, cliSchema, cliSummary } from './model-clis.js';

const settingFlags = {
  port: {
    type: 'string',
    short: 'p',
    placeholder: '<n>',
    description: 'TCP port; 0 picks a free one (MODEL_API_PORT)',
  },
  host: { type: 'string', placeholder: '<address>', description: 'bind address (MODEL_API_HOST)' },
  cli: {
    type: 'string',
    placeholder: '<kind>',
    values: cliKinds,
    description: `${cliSummary} (MODEL_API_CLI)`,
  },
} as const satisfies Record<string, Flag>;

const depthFlags = {
  settings: { type: 'boolean', description: 'check the settings alone, and run no model CLI' },
  ask: { type: 'boolean', description: 'also ask the model one question, which uses tokens' },
} as const satisfies Record<string, Flag>;

const sourceFlags = {
  'env-file': {
    type: 'string',
    multiple: true,
    values: 'file',
    placeholder: '<file>',
    description: 'read the settings from this file of systemd (EnvironmentFile=), not from the environment',
  },
  unit: { type: 'boolean', description: 'read the settings of a systemd unit; default: prompt-relay' },
} as const satisfies Record<string, Flag>;

const variableOfFlag = {
  port: 'MODEL_API_PORT',
  host: 'MODEL_API_HOST',
  cli: 'MODEL_API_CLI',
} as const satisfies Record<keyof typeof settingFlags, VariableName>;

/** Converts flags to the variables that they override. Throws a CommandError. */
function settingsFrom(args: CommandArguments): Environment {
  const givenSettings = Object.entries(variableOfFlag).flatMap(([flag, name]) => {
    const value = args.value(flag);
    if (value === undefined) return [];
    const schema = name === 'MODEL_API_CLI' ? cliSchema : variables[name][1];
    const parsed = schema.safeParse(value);
    if (parsed.success) return [[name, value] as const];
    throw new CommandError(exitCodes.usage, `--${flag}: ${parsed.error.issues[0]?.message}`);
  });
  return Object.fromEntries(givenSettings);
}

const settingNotes = ['All other settings are MODEL_API_* variables. A flag has priority over its variable.'] as const;

/** Command that runs the service in this process. The service handles signals, writes the log and ends the process. */
export const serve: Command = {
  name: 'serve',
  synopsis: '',
  summary: 'run the service; this is the default command',
  flags: settingFlags,
  maxPositionals: 0,
  notes: [
    ...settingNotes,
    'Ctrl-C ends the service after its running jobs; a second Ctrl-C ends them at once. The service also ends when its terminal or its npx ends.',
  ],
  examples: [
    'prompt-relay serve',
    'prompt-relay serve --port 5052 --cli demo',
    'MODEL_API_WORKERS=2 prompt-relay serve',
  ],
  run: async (args) => {
    const settings = settingsFrom(args);
    const { start } = await import('../../primary/main.js');
    start(settings);
    return null;
  },
};

/**
 * Resolves with whether each model CLI of a service with this environment reports what a job costs; null if the
 * environment names no model CLI, or has faults.
 */
export async function reportsCosts(env: Readonly<Record<string, string | undefined>>): Promise<boolean | null> {
  if (!env.MODEL_API_CLI && !env.MODEL_API_CLIS) return null;
  const { reportsCosts: readCosts } = await import('../../primary/main.js');
  return readCosts(env).catch(() => null);
}

/** Command that reads the configuration of the service and tests its model CLI, without starting the service. */
export const check: Command = {
  name: 'check',
  synopsis: '[--unit [unit]]',
  summary: 'show the configuration and test the model CLI, without starting the service',
  flags: { ...settingFlags, ...sourceFlags, ...depthFlags, ...jsonFlag },
  maxPositionals: 1,
  notes: [
    ...settingNotes,
    'With --settings, the exit code is 78 if the service would not start with the settings. With --unit, the command reads Environment=, EnvironmentFile= and LoadCredential= from systemd, and tests the model CLI as the user of the unit, which usually needs root.',
  ],
  examples: [
    'prompt-relay check',
    'prompt-relay check --cli claude --ask',
    'prompt-relay check --env-file /etc/prompt-relay/environment',
    'sudo prompt-relay check --unit',
  ],
  run: async (args, { terminal }) => {
    const settings = settingsFrom(args);
    try {
      const other = await otherSettings(args);
      for (const note of other?.notes ?? []) showWarning(note, terminal);
      const { inspectSetup, inspectSettings } = await import('../../primary/main.js');
      if (args.has('settings')) {
        const warnings = inspectSettings(settings, other).catch((error: unknown) => faultsAsWarnings(error, other));
        return await showSettings(await warnings, args, terminal);
      }
      return await show(await inspectSetup(settings, args.has('ask'), other), args.has('json'), terminal);
    } catch (error) {
      if (!(error instanceof ConfigFault)) throw error;
      const { faults, warnings } = error;
      if (args.has('json')) await terminal.writeJson({ faults, warnings });
      for (const fault of faults) terminal.message(`${terminal.messagePaint.red('fault')}  ${fault}`);
      for (const warning of warnings) showWarning(warning, terminal);
      return exitCodes.config;
    }
  },
};

/** Prints the result of a check of the settings alone. */
async function showSettings(warnings: readonly string[], args: CommandArguments, terminal: Terminal): Promise<number> {
  if (args.has('ask')) throw usageError('check', 'use --settings or --ask');
  if (args.has('json')) await terminal.writeJson({ faults: [], warnings });
  else await terminal.writeLine('The service can start with these settings.');
  for (const warning of warnings) showWarning(warning, terminal);
  return exitCodes.ok;
}

function showWarning(warning: string, terminal: Terminal): void {
  terminal.message(`${terminal.messagePaint.yellow('warning')}  ${warning}`);
}

/** Reads the settings of another service; null if the environment of this process has the settings. */
async function otherSettings(args: CommandArguments): Promise<ForeignSettings | null> {
  const [paths, [unit]] = [args.values('env-file'), args.positionals];
  if (unit !== undefined && !args.has('unit')) throw usageError('check', `unexpected argument ${unit}`);
  if (args.has('unit') && paths.length > 0) throw usageError('check', 'use --unit or --env-file');
  if (args.has('unit')) return settingsOfUnit(unit ?? 'prompt-relay', systemHost);
  if (paths.length === 0) return null;
  const files = await Promise.all(paths.map(readSettings));
  const env = Object.assign({}, ...files.map((file) => file.env)) as Environment; // a later file has precedence
  const notes = files.flatMap((file) => file.notes);
  return { env, keepsOwn: true, files: new Map(), notes, cgroups: null, lacksCredential: false };
}

async function readSettings(path: string): Promise<Pick<ForeignSettings, 'env' | 'notes'>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(exitCodes.config, `check: ${fileFault(path, error)}`);
  });
  const { env, notes } = readEnvFile(text);
  return { env, notes: notes.map((note) => `${path}: ${note}`) };
}

const run = promisify(execFile);

const systemHost: UnitHost = {
  read: (path) => readFile(path, 'utf8'),
  systemctl: async (...words) => {
    const { stdout } = await run('systemctl', words).catch(({ stderr = '', message }) => {
      throw new CommandError(exitCodes.unavailable, `check: systemctl: ${(stderr || message).trim()}`);
    });
    return stdout;
  },
  become: async (user, group, otherGroups) => {
    const me = userInfo();
    if (me.username !== user && me.uid !== 0)
      throw new CommandError(exitCodes.notAllowed, `check: the unit runs as ${user}: run this as root or as ${user}`);
    if (me.username !== user) {
      const [first = 0, ...others] = (await run('id', ['--groups', user])).stdout.trim().split(' ').map(Number);
      const named = otherGroups.map((name) => (/^\d+$/.test(name) ? Number(name) : name));
      process.setgroups?.([first, ...others, ...named]);
      process.setgid?.(group === '' ? first : group);
      process.setuid?.(user);
    }
    const { username, homedir, shell } = userInfo();
    return { USER: username, LOGNAME: username, HOME: homedir, ...(shell && { SHELL: shell }) };
  },
};

async function show(setup: CheckReport, asJson: boolean, terminal: Terminal): Promise<number> {
  if (asJson) await terminal.writeJson(setup);
  else await terminal.writeLines(renderSetupReport(setup, terminal.paint));
  if ((setup.model_clis ?? [setup.model_cli]).some(({ ready }) => !ready)) return exitCodes.unavailable;
  return (setup.asked?.error ?? null) === null ? exitCodes.ok : exitCodes.failed;
}

type ShownCli = SetupReport['model_cli'] & { readonly cli?: string };

/** `ollama_url`: null or missing if programs for Ollama have no separate port. */
export function renderSetupReport(
  setup: CheckReport & { readonly ollama_url?: string | null },
  paint: Paint,
): string[] {
  const { model_cli: cli } = setup;
  const rows: [string, string][] = [
    ['address', [setup.url, ...(setup.socket === null ? [] : [setup.socket])].join(' and ')],
    ...(setup.ollama_url ? [['Ollama’s clients', setup.ollama_url] as [string, string]] : []),
    ['API keys', keysOf(setup, paint)],
    ...usersOf(setup),
    ['workers', formatNumber(setup.workers)],
    ['jobs', `up to ${formatNumber(setup.max_concurrent)} at once, ${formatDuration(setup.execution_timeout_ms)} each`],
    ['queue', `up to ${formatCount(setup.max_queue, 'job')}, ${formatDuration(setup.queue_timeout_ms)} each`],
    ...(setup.model_clis ?? [cli]).flatMap((each) => rowsOf(each, paint)),
    ['models', setup.models.map(modelIn).join(', ')],
    ...(setup.asked === undefined ? [] : trialRows(setup.asked, paint)),
    ['processes', terminationOf(setup.termination)],
    ['store', storeOf(setup.store)],
    ...setup.warnings.map((warning): [string, string] => ['warning', paint.yellow(warning)]),
  ];
  return labelledRows(rows, paint.dim);
}

function rowsOf(cli: ShownCli, paint: Paint): [string, string][] {
  const name = [cli.cli ?? '', cli.adapter === cli.cli ? '' : cli.adapter, cli.version ?? ''];
  return [
    ['model CLI', name.filter((word) => word !== '').join(' ')],
    ['command', cli.command.map(shellWord).join(' ')],
    ['ready', readiness(cli, paint)],
  ];
}

function modelIn({ id, default: isDefault, alias_of: target }: SetupReport['models'][number]): string {
  if (target !== undefined) return `${id} (stands for ${target})`;
  return isDefault ? `${id} (default)` : id;
}

function keysOf({ keys, needs_key: needsKey }: SetupReport, paint: Paint): string {
  if (keys.length > 0) return keys.join(', ');
  return needsKey
    ? paint.red('none in the keys file: every request is refused')
    : paint.yellow('none: /ask and /chat need no key');
}

/** Returns the row of the local users who may call without a key. */
function usersOf({ needs_key: needsKey, local_users: mode, allowed_users: allowed }: SetupReport): [string, string][] {
  if (needsKey) return [];
  const whom = allowed.length > 0 ? `only ${allowed.join(', ')}` : mode;
  return [['users', whom]];
}

function readiness({ ready, error, duration_ms: ms }: SetupReport['model_cli'], paint: Paint): string {
  return ready ? `${paint.green('yes')} (checked in ${formatDuration(ms)})` : `${paint.red('no')}: ${error ?? ''}`;
}

/** Formats the test question and its answer. */
function trialRows(trial: TrialAnswer, paint: Paint): [string, string][] {
  const { question, answer, error, model, deltas, duration_ms: ms, first_delta_ms: firstMs } = trial;
  const duration = `in ${formatDuration(ms)}${model === null ? '' : ` by ${model}`}`;
  const came =
    firstMs === null ? '' : `; first words after ${formatDuration(firstMs)}, ${formatCount(deltas, 'piece')}`;
  const answerText = answer === null ? `${paint.red('failed')}: ${error ?? ''}` : answer;
  return [
    ['asked', `${question} (this spends tokens)`],
    ['answer', answerText.replace(/\s+/g, ' ')],
    ['took', duration + came],
  ];
}

function storeOf({ kind, place }: SetupReport['store']): string {
  return place === null ? `${kind}: a restart forgets conversations` : `${kind}: ${place}`;
}

function terminationOf({ means, no_cgroup: reason }: SetupReport['termination']): string {
  if (means === 'cgroup') return 'each in a separate cgroup';
  return `each in a separate process group${reason === null ? '' : `; cgroups are unavailable: ${reason}`}`;
}
