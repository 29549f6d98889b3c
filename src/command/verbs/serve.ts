import type { CheckReport } from '../../shared/api/setup.js';
import { ConfigFault, type Environment } from '../../shared/config/config.js';
import { cliKinds, type VariableName, variables } from '../../shared/config/variables.js';
import { type Command, type CommandArguments, type Flag, jsonFlag } from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { renderSetupReport } from '../render/setup-report.js';

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
  ask: { type: 'boolean', description: 'have the model answer one question, too, which spends tokens' },
} as const satisfies Record<string, Flag>;

const variableOfFlag = {
  port: 'MODEL_API_PORT',
  host: 'MODEL_API_HOST',
  cli: 'MODEL_API_CLI',
} as const satisfies Record<keyof typeof settingFlags, VariableName>;

/** The flags as the variables that they stand for: they win over the environment. Throws a CommandError. */
function settingsFrom(args: CommandArguments): Environment {
  const given = Object.entries(variableOfFlag).flatMap(([flag, name]) => {
    const value = args.value(flag);
    if (value === undefined) return [];
    const parsed = variables[name][1].safeParse(value);
    if (parsed.success) return [[name, value] as const];
    throw new CommandError(exitCodes.usage, `--${flag}: ${parsed.error.issues[0]?.message}`);
  });
  return Object.fromEntries(given);
}

const settingNotes = ['All other settings are MODEL_API_* variables. A flag wins over its variable.'] as const;

/** Runs the service in this process. The service handles signals, writes the log and ends the process. */
export const serve: Command = {
  name: 'serve',
  synopsis: '',
  summary: 'run the service; this is the default command',
  flags: settingFlags,
  maxPositionals: 0,
  notes: [
    ...settingNotes,
    'Ctrl-C ends it when the jobs that run are finished; a second one cuts them. It also ends when its terminal is closed, or when the npx that has started it goes.',
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

/** Reads the configuration of the service and tests its model CLI, without starting the service. */
export const check: Command = {
  name: 'check',
  synopsis: '',
  summary: 'show the configuration and test the model CLI, without starting the service',
  flags: { ...settingFlags, ...askFlag, ...jsonFlag },
  maxPositionals: 0,
  notes: settingNotes,
  examples: ['prompt-relay check', 'prompt-relay check --cli claude --ask'],
  run: async (args, { terminal }) => {
    const settings = settingsFrom(args);
    const { inspectSetup } = await import('../../primary/main.js');
    try {
      return await show(await inspectSetup(settings, args.has('ask')), args.has('json'), terminal);
    } catch (error) {
      if (!(error instanceof ConfigFault)) throw error;
      const { faults, warnings } = error;
      if (args.has('json')) await terminal.writeJson({ faults, warnings });
      for (const fault of faults) terminal.message(`${terminal.messagePaint.red('fault')}  ${fault}`);
      for (const warning of warnings) terminal.message(`${terminal.messagePaint.yellow('warning')}  ${warning}`);
      return exitCodes.config;
    }
  },
};

async function show(setup: CheckReport, asJson: boolean, terminal: Terminal): Promise<number> {
  if (asJson) await terminal.writeJson(setup);
  else await terminal.writeLines(renderSetupReport(setup, terminal.paint));
  if ((setup.model_clis ?? [setup.model_cli]).some(({ ready }) => !ready)) return exitCodes.unavailable;
  return (setup.asked?.error ?? null) === null ? exitCodes.ok : exitCodes.failed;
}
