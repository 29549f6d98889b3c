import {
  type Adapter,
  crashed,
  type Decoder,
  type Exit,
  type LaunchOptions,
  type ProgramVersion,
  type Turn,
  type TurnEvent,
  unknownUsage,
} from '../../contract/adapter.js';
import { PrintedText } from '../common/lines.js';
import { promptOf } from '../common/transcript.js';

export interface CommandOptions {
  readonly extraArgs: readonly string[];
  readonly takesModel: boolean;
  readonly ownName: string;
  /** Form in which system text and history precede the question. */
  readonly template: CommandTemplate;
  /** Whether terminal sequences and final line breaks are removed from the answer. */
  readonly stripAnsi: boolean;
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

function programVersion(args: readonly string[], { ownName, template, stripAnsi }: CommandOptions): ProgramVersion {
  return {
    version: null,
    plan: (launch: LaunchOptions) => ({
      args: args.map((word) => word.replaceAll('{model}', launch.model ?? ownName)),
      files: [],
    }),
    extras: {},
    protocol: () => ({
      writer: { write: (turn) => ({ text: inputOf(turn, template), stdin: 'end' }) },
      decoder: plainText(stripAnsi ? new PrintedText() : { add: (chunk) => chunk }),
    }),
    check: async () => null, // without a prompt, only the permission to execute can be checked
    listModels: async () => null,
  };
}

function plainText(answer: Pick<PrintedText, 'add'>): Decoder {
  let isEmpty = true;
  return {
    hasBegun: true, // all output is the answer
    *read(chunk): Generator<TurnEvent> {
      const text = answer.add(chunk);
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

/** Forms of system text, history and question on stdin, for a program without roles. */
const templates = {
  /** Texts only, separated by a blank line, without roles. */
  plain: ({ system, history, text }) => [...(system === null ? [] : [system]), ...textsOf(history), text].join('\n\n'),
  /** A single question unchanged; a conversation with a line before each message that no message can forge. */
  transcript: promptOf,
  /** One JSON object per line, the last with the question. */
  jsonl: ({ system, history, text }) => {
    const instruction = system === null ? [] : [{ role: 'system', content: system }];
    const messages = history.map((message) => ({ role: message.role, content: message.text }));
    const lines = [...instruction, ...messages, { role: 'user', content: text }];
    return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  },
} as const satisfies Record<string, (turn: Turn) => string>;

export type CommandTemplate = keyof typeof templates;

/** Returns the whole stdin of a turn. */
export function inputOf(turn: Turn, template: CommandTemplate): string {
  return templates[template](turn);
}

function textsOf(history: Turn['history']): string[] {
  return history.map(({ text }) => text);
}
