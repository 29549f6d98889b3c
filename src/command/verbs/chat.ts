import type { Interface } from 'node:readline';
import { chatResult } from '../../shared/api/chat.js';
import { conversationMessages } from '../../shared/api/conversations.js';
import { modelList } from '../../shared/api/models.js';
import { BoundedQueue } from '../../shared/async.js';
import { shellWord } from '../../shared/text/format.js';
import { plain } from '../../shared/text/paint.js';
import { fileFault } from '../../shared/text/system-error.js';
import type { Client } from '../base/client.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  clientFor,
  modelFlag,
} from '../base/command.js';
import { CommandError, exitCodes, InterruptedError, ServiceError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';
import { wrappedRows } from '../render/columns.js';
import { printJob } from './answer.js';
import { fileFlag, readDocuments } from './ask.js';

/** Commands that a user can type in a chat. */
const chatWords = [
  { word: '/help', argument: '', meaning: 'show this list' },
  { word: '/model', argument: '[id]', meaning: 'show the model, or choose another for the next messages' },
  { word: '/new', argument: '', meaning: 'start a new conversation' },
  { word: '/history', argument: '', meaning: 'show the conversation so far' },
  { word: '/save', argument: '<file>', meaning: 'write the conversation to a new file, as Markdown' },
  { word: '/exit', argument: '', meaning: 'leave, like Ctrl-D' },
] as const;

type ChatWord = (typeof chatWords)[number]['word'];

export const chat: Command = {
  name: 'chat',
  synopsis: '',
  summary: 'chat with a model in the terminal',
  flags: {
    ...modelFlag,
    system: {
      type: 'string',
      short: 's',
      placeholder: '<text>',
      description: 'instructions, for a new conversation only',
    },
    ...fileFlag,
    conversation: { type: 'string', short: 'c', placeholder: '<id>', description: 'conversation to continue' },
    ...addressFlags,
  },
  maxPositionals: 0,
  notes: [
    'The first message carries the files of --file; later turns of the conversation have them too.',
    `Ctrl-C cancels an answer, Ctrl-D leaves. Commands of the chat: ${chatWords.map(({ word }) => word).join(', ')}.`,
    'To send a message that begins with a slash, type a second slash before it. Messages can also come from a file or a pipe, one per line.',
  ],
  examples: ['prompt-relay chat', "prompt-relay chat -m opus --system 'Answer in one sentence.'"],
  run: async (args, context) => {
    const { terminal } = context;
    const documents = await readDocuments(args.values('file'), context.files);
    const conversation = new ChatConversation(await clientFor(args, context), args, context, documents);
    if (terminal.isStdinTty) await greet(conversation, terminal);
    using input = new ChatInput(terminal.messagePaint.bold('you> '), terminal);
    const code = await converse(input, conversation, terminal);
    if (terminal.isStdinTty) terminal.message(terminal.messagePaint.dim(conversation.resumeHint));
    return code;
  },
};

const keysHelp = 'Ctrl-C cancels an answer, /help shows all commands, Ctrl-D leaves.';

async function greet(conversation: ChatConversation, terminal: Terminal): Promise<void> {
  const model = conversation.model ?? (await defaultModel(conversation.client));
  const sentences = `Service: ${conversation.client.url}, model: ${plain(model)}\n${keysHelp}`;
  terminal.sentences(sentences, terminal.messagePaint.dim);
}

async function defaultModel(client: Client): Promise<string> {
  const { models } = await client.get('/models', modelList);
  return models.find((model) => model.default)?.id ?? "the model CLI's own";
}

/**
 * Reads and processes lines until the end. After a failed turn, the chat continues at a terminal, and ends if the input
 * is a file or a pipe.
 */
async function converse(chatInput: ChatInput, conversation: ChatConversation, terminal: Terminal): Promise<number> {
  for (;;) {
    const line = await chatInput.nextLine();
    if (line === null && terminal.isStdinTty) terminal.message('');
    if (line === null) return exitCodes.ok;
    const input = readLine(line);
    if (input.type === 'leave') return exitCodes.ok;
    const code =
      input.type === 'message'
        ? await chatInput.runTurn((signal) => conversation.sendMessage(input.text, signal))
        : await conversation.obey(input);
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
  /** Controller that cancels the running turn; null while no turn runs. */
  #turn: AbortController | null = null;
  #isPrompting = false;
  /** Number of lines that were typed during a turn, and so were not echoed. */
  #hiddenLines = 0;

  constructor(prompt: string, terminal: Terminal) {
    this.#terminal = terminal;
    this.#prompt = prompt;
    // Input typed during a turn is not echoed, and appears with the next prompt.
    this.#readline = terminal.openLines(() => !this.#isPrompting);
    this.#readline.setPrompt(prompt);
    this.#readline.on('line', (line) => this.#add(line));
    this.#readline.on('close', () => this.#lines.finish());
    this.#readline.on('SIGINT', () => this.#interrupt());
    this.#readline.on('SIGCONT', () => this.#continue());
    this.#interrupts = terminal.onInterrupt(() => this.#interrupt());
  }

  /** Resolves with the next line, or with null at the end of the input. */
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
    this.#isPrompting = false; // pasted text may have several lines; only the first one answers the prompt
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

  /** Handles SIGCONT, after Ctrl-Z and `fg`. readline has paused stdin; the process would end if it remained paused. */
  #continue(): void {
    if (this.#isPrompting) this.#readline.prompt(true);
    else this.#readline.resume();
  }

  /**
   * Handles Ctrl-C: cancels the turn. If no turn runs, clears the line, or ends the chat if readline does not edit the
   * input.
   */
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

/** Parsed line of the chat. */
type ChatLine =
  | { readonly type: 'message'; readonly text: string }
  | { readonly type: 'word'; readonly word: Exclude<ChatWord, '/exit'>; readonly argument: string }
  | { readonly type: 'unknown'; readonly word: string }
  | { readonly type: 'nothing' }
  | { readonly type: 'leave' };

/**
 * Parses a line. A line that begins with a slash is never sent, because it may be a mistyped command. Two slashes stand
 * for one.
 */
export function readLine(line: string): ChatLine {
  const trimmed = line.trim();
  if (trimmed === '') return { type: 'nothing' };
  if (!trimmed.startsWith('/')) return { type: 'message', text: line };
  if (trimmed.startsWith('//')) return { type: 'message', text: trimmed.slice(1) };
  const [, word = '', argument = ''] = /^(\S+)\s*([\s\S]*)$/.exec(trimmed) ?? [];
  if (word === '/exit' || word === '/quit') return { type: 'leave' };
  const known = chatWords.find((candidate) => candidate.word === word)?.word;
  if (known === undefined || known === '/exit') return { type: 'unknown', word };
  return { type: 'word', word: known, argument };
}

/** Chat commands that the conversation executes. */
type Wish = Exclude<ChatLine, { readonly type: 'message' | 'leave' }>;

/** Owns the ID of the current conversation, and the model for its next turn. */
export class ChatConversation {
  readonly client: Client;
  readonly #context: CommandContext;
  readonly #system: string | undefined;
  #model: string | undefined;
  #id: string | undefined;
  /** Documents for the next message; undefined if they are sent. */
  #documents: readonly object[] | undefined;

  constructor(client: Client, args: CommandArguments, context: CommandContext, documents?: readonly object[]) {
    this.client = client;
    this.#context = context;
    this.#documents = documents;
    this.#model = args.value('model');
    this.#system = args.value('system');
    this.#id = args.value('conversation');
    if (this.#id !== undefined && this.#system !== undefined)
      throw new CommandError(
        exitCodes.usage,
        '--system and --conversation cannot be used together: --system is for new conversations only',
      );
  }

  /** Model that the user has chosen; if undefined, the service chooses. */
  get model(): string | undefined {
    return this.#model;
  }

  get resumeHint(): string {
    // The ID is quoted, because users may paste the command into a shell.
    return this.#id === undefined
      ? 'There is no conversation to continue.'
      : `To resume: prompt-relay chat --conversation ${shellWord(plain(this.#id))}`;
  }

  /** Sends a message, and prints the answer or the error. Resolves with the exit code of the turn. */
  async sendMessage(message: string, signal: AbortSignal): Promise<number> {
    const system = this.#id === undefined ? this.#system : undefined;
    const body = { message, conversation_id: this.#id, model: this.#model, system, files: this.#documents };
    const call = { path: '/chat', body, schema: chatResult } as const;
    try {
      this.#id = (await printJob(this.client, call, signal, this.#context)).conversation_id;
      this.#documents = undefined;
      return exitCodes.ok;
    } catch (error) {
      return this.#report(error);
    }
  }

  /** Executes a chat command. Resolves with an exit code. */
  async obey(wish: Wish): Promise<number> {
    try {
      if (wish.type === 'unknown') throw new CommandError(exitCodes.usage, unknownWord(wish.word));
      if (wish.type === 'word') await this.#actions[wish.word](wish.argument);
      return exitCodes.ok;
    } catch (error) {
      return this.#report(error);
    }
  }

  readonly #actions = {
    '/help': async () => this.#showHelp(),
    '/model': (id: string) => this.#chooseModel(id),
    '/new': async () => {
      this.#id = undefined; // the next message starts a new conversation
      this.#say('Started a new conversation.');
    },
    '/history': () => this.#showHistory(),
    '/save': (path: string) => this.#save(path),
  } as const;

  #showHelp(): void {
    const rows = chatWords.map(({ word, argument, meaning }) => [`${word} ${argument}`.trim(), meaning] as const);
    const { terminal } = this.#context;
    for (const line of wrappedRows([...rows, ['//…', 'a message that begins with a slash']], terminal.textColumns))
      terminal.message(terminal.messagePaint.dim(line));
  }

  async #chooseModel(id: string): Promise<void> {
    const { models } = await this.client.get('/models', modelList);
    const known = models.map((model) => model.id);
    const current = this.#model ?? models.find((model) => model.default)?.id ?? "the model CLI's own";
    if (id === '') return this.#say(`Model: ${current}. The service lists ${known.join(', ')}.`);
    this.#model = id;
    const isListed = known.includes(id);
    this.#say(`Model: ${id}.${isListed ? '' : ` The service does not list it, but ${known.join(', ')}.`}`);
  }

  async #showHistory(): Promise<void> {
    const { terminal } = this.#context;
    const { messages } = await this.client.getState(this.#messagesPath(), conversationMessages);
    for (const { role, content } of messages) {
      const name = role === 'user' ? 'you' : 'model';
      await terminal.writeLine(terminal.paint.bold(`${name}>`));
      await terminal.writeUntrusted(`${content}\n`);
    }
  }

  async #save(path: string): Promise<void> {
    if (path === '') throw new CommandError(exitCodes.usage, '/save: name a file, such as /save talk.md');
    const text = await this.client.getText(`${this.#messagesPath()}?format=markdown`);
    await this.#context.files.create(path, text).catch((error: NodeJS.ErrnoException) => {
      const cause = error.code === 'EEXIST' ? `${path} already exists: name a new file` : fileFault(path, error);
      throw new CommandError(exitCodes.output, `/save: ${cause}`);
    });
    this.#say(`Saved as ${path}.`);
  }

  #messagesPath(): string {
    if (this.#id !== undefined) return `/chat/${encodeURIComponent(this.#id)}/messages`;
    throw new CommandError(exitCodes.usage, 'The conversation has no messages yet.');
  }

  #say(text: string): void {
    this.#context.terminal.sentences(text, this.#context.terminal.messagePaint.dim);
  }

  #report(error: unknown): number {
    const { terminal } = this.#context;
    if (error instanceof InterruptedError) this.#say('Cancelled. The conversation is unchanged.');
    else if (error instanceof ServiceError && error.concerns('conversation_id')) this.#reportLost();
    else if (error instanceof CommandError) terminal.sentences(error.message, terminal.messagePaint.red);
    else throw error;
    return error instanceof CommandError ? error.exitCode : exitCodes.interrupted;
  }

  /**
   * Reports that the service does not know the conversation. Forgets its ID, which would make every later turn fail.
   */
  #reportLost(): void {
    const { terminal } = this.#context;
    terminal.message(terminal.messagePaint.red(`The service has no conversation ${this.#id}.`));
    if (terminal.isStdinTty) this.#say('Your next message starts a new one.');
    this.#id = undefined;
  }
}

function unknownWord(word: string): string {
  return `${word} is not a command: /help shows all commands. To send a message that begins with a slash, type a second slash before it.`;
}
