/**
 * What a program of `command` has to do with models: whether its arguments hold `{model}` (one that takes none has one
 * model, whatever a request names), and what to call the model of a request that names none.
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
