import { promptOf } from '../../primary/cli/adapters/common/transcript.js';
import {
  type Adapter,
  crashed,
  type Decoder,
  type Exit,
  type LaunchOptions,
  type ProgramVersion,
  type TurnEvent,
  unknownUsage,
} from '../../primary/cli/contract/adapter.js';
import type { CreateCliAdapter } from '../../primary/cli/contract/adapter-family.js';
import { commandModel } from './models.js';
import { PrintedText } from './printed-text.js';

/** Creates the adapter of a program. With several CLIs, the name of a model may begin with the name of a CLI. */
export const createCommand: CreateCliAdapter = ({ command }, { config }) => {
  const words = command ?? [''];
  const extraArgs = config.cliArgs;
  const defaultModel = config.clis.length > 0 ? null : config.defaultModel;
  return commandAdapter(words, { extraArgs, ...commandModel(words, extraArgs, defaultModel) });
};

export interface CommandOptions {
  readonly extraArgs: readonly string[];
  readonly takesModel: boolean;
  readonly ownName: string;
}

/**
 * Adapter for any program that reads a prompt from stdin until its end and writes the answer to stdout, with one turn
 * per process. `{model}` in an argument stands for the model. The exit code shows whether the answer is good.
 */
export function commandAdapter(
  command: readonly [program: string, ...args: string[]],
  options: CommandOptions,
): Adapter {
  const { takesModel, ownName } = options;
  const args = [...command.slice(1), ...options.extraArgs];
  return {
    name: 'command',
    command: [command[0]], // further words may contain {model}, so they belong to the plan
    credentialVariable: null,
    env: {},
    models: takesModel ? null : [ownName],
    needsModel: takesModel,
    learn: async () => programVersion(args, options),
  };
}

function programVersion(args: readonly string[], { ownName }: CommandOptions): ProgramVersion {
  return {
    version: null,
    plan: (launch: LaunchOptions) => ({
      args: args.map((word) => word.replaceAll('{model}', launch.model ?? ownName)),
      files: [],
    }),
    extras: {},
    protocol: () => ({
      writer: { write: (turn) => ({ text: promptOf(turn), stdin: 'end' }) },
      decoder: plainText(),
    }),
    check: async () => null, // without a prompt, only the permission to execute can be checked
    listModels: async () => null,
  };
}

/** Decodes an answer. Terminal sequences and final line breaks are not part of it: clients show it elsewhere. */
function plainText(): Decoder {
  const answer = new PrintedText();
  let isEmpty = true;
  return {
    hasBegun: true, // all output is the answer
    *read(chunk): Generator<TurnEvent> {
      const text = answer.addChunk(chunk);
      isEmpty &&= !/\S/.test(text);
      if (text !== '') yield { type: 'text-delta', text };
    },
    *exit(exit): Generator<TurnEvent> {
      if (exit.code !== 0) yield crashed(exit);
      else if (isEmpty) yield empty(exit);
      else yield { type: 'turn-end', text: null, model: null, usage: unknownUsage };
    },
  };
}

function empty({ stderr }: Exit): TurnEvent {
  const errorText = stderr.trim();
  const message = 'the model CLI exited with 0 without an answer';
  return { type: 'turn-failed', reason: 'empty_answer', message, ...(errorText !== '' && { stderr: errorText }) };
}
