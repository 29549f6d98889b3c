import { commandModel } from './command-model.js';
import type { Values } from './variables.js';

/** What contradicts itself where several CLIs are named. Looks only at what could be read. */
export function clisFaults(values: Partial<Values>): string[] {
  const { MODEL_API_CLIS: clis, MODEL_API_CLI_LIMITS: limits } = values;
  if (clis === undefined || limits === undefined) return [];
  const names = clis.map(({ name }) => name);
  const unknown = Object.keys(limits).filter((name) => !names.includes(name));
  const faults = unknown.map((name) => `MODEL_API_CLI_LIMITS: ${name} is none of MODEL_API_CLIS`);
  if (clis.length === 0) return faults;
  return [...faults, ...besides(values), ...clis.flatMap(commandFaults), ...defaultFaults(values)];
}

/** Of which CLI they speak could not be told. */
function besides(values: Partial<Values>): string[] {
  const { MODEL_API_CLI: cli, MODEL_API_CLI_COMMAND: command, MODEL_API_CLI_ARGS: args } = values;
  const stand = [
    ['MODEL_API_CLI', cli !== undefined && cli !== 'auto'],
    ['MODEL_API_CLI_COMMAND', command !== undefined && command !== null],
    ['MODEL_API_CLI_ARGS', args !== undefined && args.length > 0],
  ] as const;
  const wrong = stand.filter(([, isSet]) => isSet);
  return wrong.map(([name]) => `${name}: must not be set beside MODEL_API_CLIS: name kinds and commands there`);
}

type NamedEntry = Values['MODEL_API_CLIS'][number];

function commandFaults({ name, kind, command }: NamedEntry): string[] {
  return (kind === 'command' || kind === 'acp') && command === null
    ? [`MODEL_API_CLIS: ${name} needs its command, as in ${name}=${kind}:program --flag`]
    : [];
}

/** A request that names no model must find one. */
function defaultFaults(values: Partial<Values>): string[] {
  const {
    MODEL_API_CLIS: [first] = [],
    MODEL_API_DEFAULT_MODEL: model,
    MODEL_API_ALLOWED_MODELS: allowed = [],
  } = values;
  if (allowed.length > 0) return []; // the first of them is the default
  if (first?.kind !== 'command' || first.command === null || model !== null) return [];
  return commandModel(first.command, [], null).takesModel
    ? [`MODEL_API_DEFAULT_MODEL: must be set when the command of the first CLI, ${first.name}, holds {model}`]
    : [];
}
