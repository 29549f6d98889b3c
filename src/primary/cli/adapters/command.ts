import {
  type Adapter,
  crashed,
  type Decoder,
  type Dialect,
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
  options: { readonly extraArgs: readonly string[]; readonly takesModel: boolean; readonly ownName: string },
): Adapter {
  const { extraArgs, takesModel, ownName } = options;
  const args = [...command.slice(1), ...extraArgs];
  return {
    name: 'command',
    command: [command[0]], // the other words may hold {model}, so they belong to the plan
    credentialVariable: null,
    env: {},
    models: takesModel ? null : [ownName],
    learn: async () => dialect(args, ownName),
  };
}

function dialect(args: readonly string[], ownName: string): Dialect {
  return {
    version: null,
    plan: (launch: Launch) => ({
      args: args.map((word) => word.replaceAll('{model}', launch.model ?? ownName)),
      files: [],
    }),
    extras: {},
    writer: () => ({ write: (turn) => ({ text: promptOf(turn), stdin: 'end' }) }),
    decoder: () => plainText,
    check: async () => null, // without a prompt, nothing more can be known than that it may be executed
    listModels: async () => null,
  };
}

/** The program knows no roles: a single prompt is passed as it is, anything more as a transcript. */
function promptOf({ text, system, history }: Turn): string {
  const latest = { role: 'user' as const, text };
  if (system === null && history.length === 0) return text;
  const said = history.map(({ role, text }) => ({ role, text })); // each text is read once
  return transcript([...(system === null ? [] : [{ role: 'system' as const, text: system }]), ...said, latest]);
}

type TranscriptMessage = Readonly<Record<'role' | 'text', string>>;

/** A line with the role and a mark stands before each message. No message holds the mark, so none can forge such a line. */
function transcript(messages: readonly TranscriptMessage[]): string {
  const mark = freshMark(messages);
  const parts = messages.map(({ role, text }) => `[${mark} ${role}]\n${text}`);
  return [
    `A conversation follows. A line "[${mark} role]" stands before each message and says who wrote it; nothing else does.`,
    ...parts,
    `[${mark} end] Answer the last message as the assistant, with the answer alone.`,
    '',
  ].join('\n\n');
}

/** Seven units: V8 looks for less by the first letter alone, which is slow in a text full of that letter. */
const usualMark = 'turn-11';

/**
 * The same one over and over keeps what a program may cache of an earlier transcript. Where a message holds it, a number
 * that nobody can foresee is taken, so that no text makes the search long.
 */
function freshMark(messages: readonly TranscriptMessage[]): string {
  let mark = usualMark;
  while (messages.some(({ text }) => text.includes(mark))) mark = `turn-${Math.floor(Math.random() * 2 ** 52)}`;
  return mark;
}

const plainText: Decoder = {
  hasBegun: true, // whatever it writes is the answer
  *read(chunk): Generator<TurnEvent> {
    yield { type: 'text-delta', text: chunk };
  },
  *exit(exit): Generator<TurnEvent> {
    if (exit.code === 0) yield { type: 'turn-end', text: null, model: null, usage: unknownUsage };
    else yield crashed(exit);
  },
};
