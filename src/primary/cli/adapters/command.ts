import {
  type Adapter,
  type Decoder,
  type Dialect,
  type Exit,
  type Launch,
  type Turn,
  type TurnEvent,
  unknownUsage,
} from '../adapter.js';

/**
 * Any program that reads a prompt from stdin until its end and writes the answer to stdout: one turn a process.
 * `{model}` in an argument stands for the model. The exit code tells whether the answer is good.
 */
export function commandAdapter(
  command: readonly [program: string, ...args: string[]],
  options: { readonly extraArgs: readonly string[]; readonly defaultModel: string | null },
): Adapter {
  const takesModel = command.some((word) => word.includes('{model}'));
  const ownName = options.defaultModel ?? command[0].split('/').at(-1) ?? command[0];
  const args = [...command.slice(1), ...options.extraArgs];
  return {
    name: 'command',
    command: [command[0]], // the other words may hold {model}: they are the plan's
    credentialVariable: null,
    models: takesModel ? null : [ownName],
    inspect: async () => dialect(args, ownName),
  };
}

function dialect(args: readonly string[], ownName: string): Dialect {
  return {
    version: null,
    plan: (launch: Launch) => ({
      args: args.map((word) => word.replaceAll('{model}', launch.model ?? ownName)),
      env: {},
      files: [],
    }),
    write: (turn) => ({ text: promptOf(turn), stdin: 'end' }),
    decoder: () => plainText,
  };
}

/** The program knows no roles, so system text stands before the prompt; alone, the prompt goes as it is. */
function promptOf(turn: Turn): string {
  return turn.system === null ? turn.text : `${turn.system}\n\n${turn.text}`;
}

const plainText: Decoder = {
  *read(chunk): Generator<TurnEvent> {
    yield { type: 'text-delta', text: chunk };
  },
  *exit(exit): Generator<TurnEvent> {
    if (exit.code === 0) yield { type: 'turn-end', text: null, model: null, usage: unknownUsage };
    else yield { type: 'turn-failed', reason: 'crashed', message: describe(exit) };
  },
};

function describe(exit: Exit): string {
  const how = exit.signal === null ? `exited with code ${exit.code}` : `was ended by ${exit.signal}`;
  const lastLine = exit.stderr.trim().split('\n').at(-1);
  return lastLine ? `the model CLI ${how}: ${lastLine}` : `the model CLI ${how}`;
}
