import type { Interface } from 'node:readline';
import { Inbox } from '../shared/inbox.js';
import type { Terminal } from './terminal.js';

/** Owns the lines that are typed, or read, for a chat, and what Ctrl-C means at each moment. */
export class ChatLines implements Disposable {
  readonly #terminal: Terminal;
  readonly #prompt: string;
  readonly #readline: Interface;
  readonly #lines = new Inbox<string>(Number.POSITIVE_INFINITY);
  readonly #interrupts: Disposable;
  /** Ends what is going on; null while a line is being typed. */
  #turn: AbortController | null = null;
  #isAsking = false;
  /** Lines that were ended while nothing could be echoed. */
  #unseen = 0;

  constructor(prompt: string, terminal: Terminal) {
    this.#terminal = terminal;
    this.#prompt = prompt;
    // What is typed while the model speaks is kept, and shown with the next prompt.
    this.#readline = terminal.openLines(() => !this.#isAsking);
    this.#readline.setPrompt(prompt);
    this.#readline.on('line', (line) => this.#keep(line));
    this.#readline.on('close', () => this.#lines.finish());
    this.#readline.on('SIGINT', () => this.#interrupt());
    this.#readline.on('SIGCONT', () => this.#goOn());
    this.#interrupts = terminal.onInterrupt(() => this.#interrupt());
  }

  /** The next line; null when there is none any more. */
  async next(): Promise<string | null> {
    const isUnseen = this.#unseen > 0;
    this.#isAsking = !isUnseen;
    if (!isUnseen) this.#showPrompt();
    const { value, done } = await this.#lines.next();
    this.#isAsking = false;
    if (done === true) return null;
    if (isUnseen) this.#showUnseen(value);
    return value;
  }

  /** Runs something that Ctrl-C, or the end of a typed chat, cancels. Rejects with `Interrupted` then. */
  async during<T>(act: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#turn = new AbortController();
    try {
      return await act(this.#turn.signal);
    } finally {
      this.#turn = null;
    }
  }

  [Symbol.dispose](): void {
    this.#interrupts[Symbol.dispose]();
    this.#readline.close();
  }

  #keep(line: string): void {
    if (!this.#isAsking && this.#terminal.isTyped) this.#unseen++;
    this.#isAsking = false; // a second line of the same paste is not the one that was asked for
    this.#lines.push(line);
  }

  #showPrompt(): void {
    if (!this.#terminal.isTyped || this.#lines.over) return;
    if (this.#terminal.isEdited) this.#readline.prompt(true);
    else this.#terminal.ask(this.#prompt);
  }

  #showUnseen(line: string): void {
    this.#unseen--;
    this.#terminal.say(this.#prompt + line);
  }

  /** After Ctrl-Z and fg: readline has paused stdin by then, and without it nothing would hold the program. */
  #goOn(): void {
    if (this.#isAsking) this.#readline.prompt(true);
    else this.#readline.resume();
  }

  /** Without a turn to cancel, the line that was begun is taken back; where none is edited, the chat is over. */
  #interrupt(): void {
    if (this.#turn !== null) return this.#turn.abort(new Interrupted());
    if (!this.#terminal.isEdited) return this.#lines.cut(new Interrupted());
    if (this.#lines.over) return;
    this.#readline.write(null, { ctrl: true, name: 'e' });
    this.#readline.write(null, { ctrl: true, name: 'u' });
    this.#terminal.say('');
    this.#terminal.say(this.#terminal.talkPaint.dim('Ctrl-D or /exit leaves.'));
    this.#readline.prompt();
  }
}

/** The person's wish to stop what is going on. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
