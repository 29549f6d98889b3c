import { askResult } from '../shared/api/ask.js';
import { addressFlags, type Command, clientOf, type Given, jsonFlag, type Surroundings } from './command.js';
import { CommandFault, exitCodes } from './exit-codes.js';
import { type Answer, type JobListener, runJob } from './job.js';
import { SpokenAnswer } from './spoken-answer.js';
import type { Terminal } from './terminal.js';

export const ask: Command = {
  name: 'ask',
  takes: '[prompt | -] …',
  summary: 'ask one question; on a screen the answer comes as it is made. For -, and without a prompt, stdin is read',
  flags: {
    model: { type: 'string', value: '<id>', meaning: 'the model to ask; prompt-relay models lists them' },
    system: { type: 'string', value: '<text>', meaning: 'instructions that stand before the prompt' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxWords: Number.POSITIVE_INFINITY,
  run: async (given, surroundings) => {
    const { terminal } = surroundings;
    const client = await clientOf(given, surroundings);
    const body = { prompt: await promptOf(given, terminal), model: given.text('model'), system: given.text('system') };
    const request = { path: '/ask', body, schema: askResult };
    const { signal } = new AbortController(); // Ctrl-C ends the program, and the service notices that its client has gone
    if (given.has('json')) await terminal.json(await runJob(client, request, silence, signal));
    else await speak((listener) => runJob(client, request, listener, signal), surroundings);
    return exitCodes.ok;
  },
};

async function speak(run: (listener: JobListener) => Promise<Answer>, { terminal }: Surroundings): Promise<void> {
  const spoken = new SpokenAnswer(terminal);
  try {
    await spoken.end(await run(spoken));
  } catch (error) {
    await spoken.breakOff();
    throw error;
  }
}

async function promptOf({ words }: Given, terminal: Terminal): Promise<string> {
  const isSpoken = words.length > 0 && !words.includes('-');
  if (!isSpoken && terminal.isTyped) terminal.say(terminal.talkPaint.dim('Type the prompt; Ctrl-D ends it.'));
  const prompt = isSpoken ? words.join(' ') : await withStdin(words, terminal);
  if (prompt.trim() === '')
    throw new CommandFault(exitCodes.usage, 'there is no prompt: give one, or write it to stdin');
  return prompt;
}

/** What stands before and after `-` keeps its distance from what stdin brings. */
async function withStdin(words: readonly string[], terminal: Terminal): Promise<string> {
  const piped = await terminal.readAll();
  const at = words.indexOf('-');
  const parts = [words.slice(0, Math.max(0, at)).join(' '), piped, words.slice(at + 1).join(' ')];
  return parts.filter((part) => part !== '').join('\n\n');
}

const silence: JobListener = { queued: () => {}, started: () => {}, delta: async () => {}, corrected: async () => {} };
