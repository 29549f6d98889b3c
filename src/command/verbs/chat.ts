import type { Interface } from 'node:readline';
import { modelList } from '../../shared/api/models.js';
import { BoundedQueue } from '../../shared/async/bounded-queue.js';
import { plain } from '../../shared/text/paint.js';
import type { Client } from '../base/client.js';
import { addressFlags, type Command, clientFor, modelFlag } from '../base/command.js';
import { exitCodes, InterruptedError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { ChatConversation, chatWords, readLine } from './chat-conversation.js';

export const chat: Command = {
  name: 'chat',
  synopsis: '',
  summary: 'have a conversation in the terminal',
  flags: {
    ...modelFlag,
    system: {
      type: 'string',
      short: 's',
      placeholder: '<text>',
      description: 'instructions, for a new conversation only',
    },
    conversation: { type: 'string', short: 'c', placeholder: '<id>', description: 'conversation to continue' },
    ...addressFlags,
  },
  maxPositionals: 0,
  notes: [
    `Ctrl-C cancels an answer, Ctrl-D leaves. Words of the chat: ${chatWords.map(({ word }) => word).join(', ')}.`,
    'A message that begins with a slash is sent with a second one before it. Messages can also come from a file or a pipe, one a line.',
  ],
  examples: ['prompt-relay chat', "prompt-relay chat -m opus --system 'Answer in one sentence.'"],
  run: async (args, context) => {
    const { terminal } = context;
    const conversation = new ChatConversation(await clientFor(args, context), args, context);
    if (terminal.isStdinTty) await greet(conversation, terminal);
    using input = new ChatInput(terminal.messagePaint.bold('you> '), terminal);
    const code = await converse(input, conversation, terminal);
    if (terminal.isStdinTty) terminal.message(terminal.messagePaint.dim(conversation.resumeHint));
    return code;
  },
};

const keysHelp = 'Ctrl-C cancels an answer, /help shows what else there is, Ctrl-D leaves.';

async function greet(conversation: ChatConversation, terminal: Terminal): Promise<void> {
  const model = conversation.model ?? (await defaultModel(conversation.client));
  const sentences = `Service: ${conversation.client.url}, model: ${plain(model)}\n${keysHelp}`;
  terminal.sentences(sentences, terminal.messagePaint.dim);
}

async function defaultModel(client: Client): Promise<string> {
  const { models } = await client.get('/models', modelList);
  return models.find((model) => model.default)?.id ?? "the model CLI's own";
}

/** At a terminal, the chat continues after a failed turn. With input from a file or a pipe, it ends there. */
async function converse(input: ChatInput, conversation: ChatConversation, terminal: Terminal): Promise<number> {
  for (;;) {
    const line = await input.nextLine();
    if (line === null && terminal.isStdinTty) terminal.message('');
    if (line === null) return exitCodes.ok;
    const meant = readLine(line);
    if (meant.type === 'leave') return exitCodes.ok;
    const code =
      meant.type === 'message'
        ? await input.runTurn((signal) => conversation.send(meant.text, signal))
        : await conversation.obey(meant);
    if (code !== exitCodes.ok && !terminal.isStdinTty) return code;
  }
}

/** Owns the input lines of a chat, and handles Ctrl-C. */
class ChatInput implements Disposable {
  readonly #terminal: Terminal;
  readonly #prompt: string;
  readonly #readline: Interface;
  readonly #lines = new BoundedQueue<string>();
  readonly #interrupts: Disposable;
  /** Cancels the running turn; null while no turn runs. */
  #turn: AbortController | null = null;
  #isPrompting = false;
  /** Lines that were typed during a turn, and so were not echoed. */
  #hiddenLines = 0;

  constructor(prompt: string, terminal: Terminal) {
    this.#terminal = terminal;
    this.#prompt = prompt;
    // Input typed during a turn is not echoed. It appears with the next prompt.
    this.#readline = terminal.openLines(() => !this.#isPrompting);
    this.#readline.setPrompt(prompt);
    this.#readline.on('line', (line) => this.#add(line));
    this.#readline.on('close', () => this.#lines.finish());
    this.#readline.on('SIGINT', () => this.#interrupt());
    this.#readline.on('SIGCONT', () => this.#continue());
    this.#interrupts = terminal.onInterrupt(() => this.#interrupt());
  }

  /** The next line, or null at the end of the input. */
  async nextLine(): Promise<string | null> {
    const isHidden = this.#hiddenLines > 0;
    this.#isPrompting = !isHidden;
    if (!isHidden) this.#showPrompt();
    const { value, done } = await this.#lines.next();
    this.#isPrompting = false;
    if (done === true) return null;
    if (isHidden) this.#showHidden(value);
    return value;
  }

  /** Runs a turn. Ctrl-C aborts its signal with an InterruptedError. */
  async runTurn<T>(turn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#turn = new AbortController();
    try {
      return await turn(this.#turn.signal);
    } finally {
      this.#turn = null;
    }
  }

  [Symbol.dispose](): void {
    this.#interrupts[Symbol.dispose]();
    this.#readline.close();
  }

  #add(line: string): void {
    if (!this.#isPrompting && this.#terminal.isStdinTty) this.#hiddenLines++;
    this.#isPrompting = false; // pasted text may hold several lines, and only the first answers the prompt
    this.#lines.push(line);
  }

  #showPrompt(): void {
    if (!this.#terminal.isStdinTty || this.#lines.isOver) return;
    if (this.#terminal.editsLines) this.#readline.prompt(true);
    else this.#terminal.showPrompt(this.#prompt);
  }

  #showHidden(line: string): void {
    this.#hiddenLines--;
    this.#terminal.message(this.#prompt + line);
  }

  /** After Ctrl-Z and fg. readline has paused stdin, and the process would end if it stayed paused. */
  #continue(): void {
    if (this.#isPrompting) this.#readline.prompt(true);
    else this.#readline.resume();
  }

  /** Cancels the turn. Without a turn, clears the line, or ends the chat if readline does not edit the input. */
  #interrupt(): void {
    if (this.#turn !== null) return this.#turn.abort(new InterruptedError());
    if (!this.#terminal.editsLines) return this.#lines.cut(new InterruptedError());
    if (this.#lines.isOver) return;
    this.#readline.write(null, { ctrl: true, name: 'e' });
    this.#readline.write(null, { ctrl: true, name: 'u' });
    this.#terminal.message('');
    this.#terminal.message(this.#terminal.messagePaint.dim('To leave, press Ctrl-D or type /exit.'));
    this.#readline.prompt();
  }
}
