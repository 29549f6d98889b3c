import type { Values } from '../../shared/config/variables.js';

/**
 * Returns how a program handles models. `takesModel` is whether its arguments contain `{model}`; if not, it has a single
 * model, whatever a request names. `ownName` is the model of a request that names none.
 */
export function commandModel(
  [program, ...args]: readonly [program: string, ...args: string[]],
  extraArgs: readonly string[],
  defaultModel: string | null,
) {
  return {
    takesModel: [...args, ...extraArgs].some((word) => word.includes('{model}')),
    ownName: defaultModel ?? program.split('/').at(-1) ?? program,
  };
}

/** Returns faults of the models of programs: an answer must never name a model that has not answered. */
export function findCommandFaults(values: Partial<Values>): string[] {
  return [...(values.MODEL_API_CLI === 'command' ? modelFaults(values) : []), ...defaultFaults(values)];
}

function modelFaults(values: Partial<Values>): string[] {
  const { MODEL_API_CLI_COMMAND: command, MODEL_API_CLI_ARGS: extraArgs } = values;
  const { MODEL_API_DEFAULT_MODEL: model, MODEL_API_ALLOWED_MODELS: allowed } = values;
  if (!command || extraArgs === undefined || model === undefined) return [];
  const { takesModel, ownName } = commandModel(command, extraArgs, model);
  const namesNone = model === null && allowed?.length === 0;
  if (takesModel && namesNone) return ['MODEL_API_DEFAULT_MODEL: must be set when the command contains {model}'];
  const otherNames = takesModel ? [] : (allowed ?? []).filter((name) => name !== ownName);
  if (otherNames.length === 0) return [];
  const cause = `the command does not contain {model}, so only ${ownName} can answer`;
  return [`MODEL_API_ALLOWED_MODELS: must not name ${otherNames.join(', ')}: ${cause}`];
}

/** Returns a fault if a request without a model would find none among several CLIs. */
function defaultFaults(values: Partial<Values>): string[] {
  const {
    MODEL_API_CLIS: [first] = [],
    MODEL_API_DEFAULT_MODEL: model,
    MODEL_API_ALLOWED_MODELS: allowed = [],
  } = values;
  if (allowed.length > 0) return []; // the first allowed model is the default
  if (first?.kind !== 'command' || first.command === null || model !== null) return [];
  return commandModel(first.command, [], null).takesModel
    ? [`MODEL_API_DEFAULT_MODEL: must be set when the command of the first CLI, ${first.name}, contains {model}`]
    : [];
}
