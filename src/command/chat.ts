import { chatResult } from '../shared/api/chat.js';
import { ChatLines, Interrupted } from './chat-lines.js';
import { type Client, Refusal } from './client.js';
import { addressFlags, type Command, clientOf, type Given } from './command.js';
import { CommandFault, exitCodes } from './exit-codes.js';
import { runJob } from './job.js';
import { plain } from './render/paint.js';
import { SpokenAnswer } from './spoken-answer.js';
import type { Terminal } from './terminal.js';

export const chat: Command = {
  name: 'chat',
  takes: '',
  summary: 'have a conversation; Ctrl-C cancels an answer, /exit or Ctrl-D leaves',
  flags: {
    model: { type: 'string', value: '<id>', meaning: 'the model to talk with; prompt-relay models lists them' },
    system: { type: 'string', value: '<text>', meaning: 'instructions, for a new conversation only' },
    conversation: { type: 'string', value: '<id>', meaning: 'the conversation to go on with' },
    ...addressFlags,
  },
  maxWords: 0,
  run: async (given, surroundings) => {
    const { terminal } = surroundings;
    const talk = new Talk(await clientOf(given, surroundings), given, terminal);
    if (terminal.isTyped) terminal.say(terminal.talkPaint.dim(`Talking with ${talk.url}.\n${help}`));
    using lines = new ChatLines(terminal.talkPaint.bold('you> '), terminal);
    const code = await converse(lines, talk, terminal);
    if (terminal.isTyped) terminal.say(terminal.talkPaint.dim(talk.farewell));
    return code;
  },
};

const help = 'Ctrl-C cancels an answer, /new begins anew, /exit or Ctrl-D leaves.';

/** A typed chat outlives a turn that failed; one that is read from elsewhere ends with it. */
async function converse(lines: ChatLines, talk: Talk, terminal: Terminal): Promise<number> {
  for (;;) {
    const line = await lines.next();
    const word = line?.trim();
    if (word === undefined && terminal.isTyped) terminal.say('');
    if (word === undefined || word === '/exit' || word === '/quit') return exitCodes.ok;
    if (word === '/help') terminal.say(help);
    else if (word === '/new') talk.forget();
    else if (word !== '') {
      const code = await lines.during((signal) => talk.say(line as string, signal));
      if (code !== exitCodes.ok && !terminal.isTyped) return code;
    }
  }
}

/** One conversation with the service. */
class Talk {
  readonly #client: Client;
  readonly #terminal: Terminal;
  readonly #model: string | undefined;
  readonly #system: string | undefined;
  #id: string | undefined;

  constructor(client: Client, given: Given, terminal: Terminal) {
    this.#client = client;
    this.#terminal = terminal;
    this.#model = given.text('model');
    this.#system = given.text('system');
    this.#id = given.text('conversation');
    if (this.#id !== undefined && this.#system !== undefined)
      throw new CommandFault(
        exitCodes.usage,
        '--system is only for a new conversation: leave out --system or --conversation',
      );
  }

  get url(): string {
    return this.#client.url;
  }

  get farewell(): string {
    return this.#id === undefined
      ? 'There is no conversation to continue.'
      : `To continue: prompt-relay chat --conversation ${this.#id}`;
  }

  forget(): void {
    this.#id = undefined;
    this.#terminal.say(this.#terminal.talkPaint.dim('A new conversation.'));
  }

  /** Says it, and shows the answer. Resolves with the exit code that tells how it went. */
  async say(message: string, signal: AbortSignal): Promise<number> {
    const spoken = new SpokenAnswer(this.#terminal);
    const system = this.#id === undefined ? this.#system : undefined;
    const body = { message, conversation_id: this.#id, model: this.#model, system };
    try {
      const answer = await runJob(this.#client, { path: '/chat', body, schema: chatResult }, spoken, signal);
      this.#id = answer.conversation_id;
      await spoken.end(answer);
      return exitCodes.ok;
    } catch (error) {
      await spoken.breakOff();
      return this.#explain(error);
    }
  }

  #explain(error: unknown): number {
    const { dim, red } = this.#terminal.talkPaint;
    if (error instanceof Interrupted) this.#terminal.say(dim('Cancelled: the conversation is as it was before.'));
    else if (error instanceof Refusal && error.isOf('conversation_id')) this.#lose();
    else if (error instanceof CommandFault) this.#terminal.say(red(plain(error.message)));
    else throw error;
    return error instanceof CommandFault ? error.exitCode : exitCodes.interrupted;
  }

  /** The service has been restarted, has forgotten it, or never knew it: every further turn of it would fail as well. */
  #lose(): void {
    const { dim, red } = this.#terminal.talkPaint;
    this.#terminal.say(red(`The service has no conversation ${plain(String(this.#id))} (any more).`));
    if (this.#terminal.isTyped) this.#terminal.say(dim('What you say next begins a new one.'));
    this.#id = undefined;
  }
}
