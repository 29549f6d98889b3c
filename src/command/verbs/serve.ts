import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import type { CheckReport } from '../../shared/api/setup.js';
import { ConfigFault, type Environment } from '../../shared/config/config.js';
import { cliKinds, type VariableName, variables } from '../../shared/config/variables.js';
import { fileFault } from '../../shared/text/system-error.js';
import { type Command, type CommandArguments, type Flag, jsonFlag } from '../base/command.js';
import { CommandError, exitCodes, usageError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { type ForeignSettings, readEnvFile, settingsOfUnit, type UnitHost } from '../base/unit-environment.js';
import { renderSetupReport } from '../render/operator.js';

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
    description: `${cliKinds.join(', ')}, or the path of an adapter (MODEL_API_CLI)`,
  },
} as const satisfies Record<string, Flag>;

const askFlag = {
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
    const parsed = variables[name][1].safeParse(value);
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
    'Ctrl-C ends the service after its running jobs; a second Ctrl-C ends them at once. The service also ends when its terminal is closed, or when the npx that started it ends.',
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

/** Command that reads the configuration of the service and tests its model CLI, without starting the service. */
export const check: Command = {
  name: 'check',
  synopsis: '[--unit [unit]]',
  summary: 'show the configuration and test the model CLI, without starting the service',
  flags: { ...settingFlags, ...sourceFlags, ...askFlag, ...jsonFlag },
  maxPositionals: 1,
  notes: [
    ...settingNotes,
    'With --unit, the command reads Environment=, EnvironmentFile= and LoadCredential= from systemd, and tests the model CLI as the user of the unit, which usually needs root.',
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
      const { inspectSetup } = await import('../../primary/main.js');
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
  return { env, keepsOwn: true, files: new Map(), notes, cgroups: null };
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
  become: async (user, group) => {
    const me = userInfo();
    if (me.username !== user && me.uid !== 0)
      throw new CommandError(exitCodes.notAllowed, `check: the unit runs as ${user}: run this as root or as ${user}`);
    if (me.username !== user) {
      const [first = 0, ...others] = (await run('id', ['--groups', user])).stdout.trim().split(' ').map(Number);
      process.setgroups?.([first, ...others]);
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
