import { askResult } from '../shared/api/ask.js';
import { printJob } from './answer-printer.js';
import { addressFlags, type Command, type CommandArguments, clientFor, jsonFlag } from './command.js';
import { CommandError, exitCodes } from './errors.js';
import { runJob } from './job.js';
import type { Terminal } from './terminal.js';

export const ask: Command = {
  name: 'ask',
  synopsis: '[prompt | -] …',
  summary: 'ask one question and print the answer; "-", or no prompt, reads stdin',
  flags: {
    model: { type: 'string', placeholder: '<id>', description: 'model to use; see "prompt-relay models"' },
    system: { type: 'string', placeholder: '<text>', description: 'instructions for the model' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: Number.POSITIVE_INFINITY,
  run: async (args, context) => {
    const { terminal } = context;
    const client = await clientFor(args, context);
    const body = { prompt: await readPrompt(args, terminal), model: args.value('model'), system: args.value('system') };
    const call = { path: '/ask', body, schema: askResult } as const;
    const { signal } = new AbortController(); // never aborted: Ctrl-C ends the process, and the service cancels the job
    if (args.has('json')) await terminal.writeJson(await runJob(client, call, signal));
    else await printJob(client, call, signal, terminal);
    return exitCodes.ok;
  },
};

async function readPrompt({ positionals }: CommandArguments, terminal: Terminal): Promise<string> {
  const usesStdin = positionals.length === 0 || positionals.includes('-');
  if (usesStdin && terminal.isStdinTty)
    terminal.message(terminal.messagePaint.dim('Type the prompt, then press Ctrl-D.'));
  const prompt = usesStdin ? await insertStdin(positionals, terminal) : positionals.join(' ');
  if (prompt.trim() !== '') return prompt;
  throw new CommandError(exitCodes.usage, 'the prompt is empty: pass it as an argument or on stdin');
}

/** Puts stdin in the place of `-`, with a blank line before and after it. */
async function insertStdin(positionals: readonly string[], terminal: Terminal): Promise<string> {
  const input = await terminal.readStdin();
  const at = positionals.indexOf('-');
  const parts = [positionals.slice(0, Math.max(0, at)).join(' '), input, positionals.slice(at + 1).join(' ')];
  return parts.filter((part) => part !== '').join('\n\n');
}
