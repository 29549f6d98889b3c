import { chatResult } from '../shared/api/chat.js';
import { plain } from '../shared/paint.js';
import { printJob } from './answer-printer.js';
import { ChatInput } from './chat-input.js';
import type { Client } from './client.js';
import { addressFlags, type Command, type CommandArguments, clientFor } from './command.js';
import { CommandError, exitCodes, InterruptedError, ServiceError } from './errors.js';
import type { Terminal } from './terminal.js';

export const chat: Command = {
  name: 'chat',
  synopsis: '',
  summary: 'have a conversation; Ctrl-C cancels an answer, /exit or Ctrl-D leaves',
  flags: {
    model: { type: 'string', placeholder: '<id>', description: 'model to use; see "prompt-relay models"' },
    system: { type: 'string', placeholder: '<text>', description: 'instructions, for a new conversation only' },
    conversation: { type: 'string', placeholder: '<id>', description: 'conversation to continue' },
    ...addressFlags,
  },
  maxPositionals: 0,
  run: async (args, context) => {
    const { terminal } = context;
    const conversation = new ChatConversation(await clientFor(args, context), args, terminal);
    if (terminal.isStdinTty) terminal.message(terminal.messagePaint.dim(`Service: ${conversation.url}\n${help}`));
    using input = new ChatInput(terminal.messagePaint.bold('you> '), terminal);
    const code = await converse(input, conversation, terminal);
    if (terminal.isStdinTty) terminal.message(terminal.messagePaint.dim(conversation.resumeHint));
    return code;
  },
};

const help = 'Ctrl-C cancels an answer, /new starts a new conversation, /exit or Ctrl-D leaves.';

/** At a terminal, the chat continues after a failed turn. With input from a file or a pipe, it ends there. */
async function converse(input: ChatInput, conversation: ChatConversation, terminal: Terminal): Promise<number> {
  for (;;) {
    const line = await input.nextLine();
    const word = line?.trim();
    if (word === undefined && terminal.isStdinTty) terminal.message('');
    if (word === undefined || word === '/exit' || word === '/quit') return exitCodes.ok;
    if (word === '/help') terminal.message(help);
    else if (word === '/new') conversation.restart();
    else if (word !== '') {
      const code = await input.runTurn((signal) => conversation.send(line as string, signal));
      if (code !== exitCodes.ok && !terminal.isStdinTty) return code;
    }
  }
}

/** Owns the ID of the current conversation. */
class ChatConversation {
  readonly #client: Client;
  readonly #terminal: Terminal;
  readonly #model: string | undefined;
  readonly #system: string | undefined;
  #id: string | undefined;

  constructor(client: Client, args: CommandArguments, terminal: Terminal) {
    this.#client = client;
    this.#terminal = terminal;
    this.#model = args.value('model');
    this.#system = args.value('system');
    this.#id = args.value('conversation');
    if (this.#id !== undefined && this.#system !== undefined)
      throw new CommandError(
        exitCodes.usage,
        '--system and --conversation cannot be used together: --system is for new conversations only',
      );
  }

  get url(): string {
    return this.#client.url;
  }

  get resumeHint(): string {
    return this.#id === undefined
      ? 'There is no conversation to continue.'
      : `To continue: prompt-relay chat --conversation ${this.#id}`;
  }

  /** The next message starts a new conversation. */
  restart(): void {
    this.#id = undefined;
    this.#terminal.message(this.#terminal.messagePaint.dim('Started a new conversation.'));
  }

  /** Sends a message, and prints the answer or the error. Resolves with the exit code of the turn. */
  async send(message: string, signal: AbortSignal): Promise<number> {
    const system = this.#id === undefined ? this.#system : undefined;
    const body = { message, conversation_id: this.#id, model: this.#model, system };
    const call = { path: '/chat', body, schema: chatResult } as const;
    try {
      this.#id = (await printJob(this.#client, call, signal, this.#terminal)).conversation_id;
      return exitCodes.ok;
    } catch (error) {
      return this.#report(error);
    }
  }

  #report(error: unknown): number {
    const { dim, red } = this.#terminal.messagePaint;
    if (error instanceof InterruptedError) this.#terminal.message(dim('Cancelled. The conversation is unchanged.'));
    else if (error instanceof ServiceError && error.concerns('conversation_id')) this.#reportLost();
    else if (error instanceof CommandError) this.#terminal.message(red(plain(error.message)));
    else throw error;
    return error instanceof CommandError ? error.exitCode : exitCodes.interrupted;
  }

  /** Forgets the ID, which would make every later turn fail as well. */
  #reportLost(): void {
    const { dim, red } = this.#terminal.messagePaint;
    this.#terminal.message(red(`The service has no conversation ${plain(String(this.#id))}.`));
    if (this.#terminal.isStdinTty) this.#terminal.message(dim('Your next message starts a new one.'));
    this.#id = undefined;
  }
}
