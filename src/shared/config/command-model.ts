/** What a program of `command` has to do with models. */
export interface CommandModel {
  /** Whether its arguments hold `{model}`; a program that takes none has one model, whatever a request names. */
  readonly takesModel: boolean;
  /** What to call the model of a request that names none. */
  readonly ownName: string;
}

export function commandModel(
  [program, ...args]: readonly [program: string, ...args: string[]],
  extraArgs: readonly string[],
  defaultModel: string | null,
): CommandModel {
  return {
    takesModel: [...args, ...extraArgs].some((word) => word.includes('{model}')),
    ownName: defaultModel ?? program.split('/').at(-1) ?? program,
  };
}
