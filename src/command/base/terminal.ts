import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Environment } from '../../shared/config/config.js';
import { wrapped } from '../../shared/text/format.js';
import { clip, type Paint, paintFor, plain, plainButPaint, plainJson } from '../../shared/text/paint.js';
import { exitCodes, InterruptedError } from './errors.js';

const defaultColumns = 80;
const minTextColumns = 40;
const maxTextColumns = 100;

/** Standard streams of the process: data goes to stdout, messages to stderr. */
export class Terminal {
  readonly #env: Environment;
  #handlesStdoutErrors = false;

  constructor(env: Environment) {
    this.#env = env;
  }

  get isStdoutTty(): boolean {
    return process.stdout.isTTY === true;
  }

  get isStderrTty(): boolean {
    return process.stderr.isTTY === true;
  }

  get isStdinTty(): boolean {
    return process.stdin.isTTY === true;
  }

  /** Whether readline edits the input and echoes it to stderr. Otherwise the terminal driver edits it. */
  get editsLines(): boolean {
    return this.isStdinTty && this.isStderrTty;
  }

  /** Width of stdout in columns. A terminal of unknown size reports 0. */
  get columns(): number {
    return process.stdout.columns || defaultColumns;
  }

  /** Width of running text in columns, which is at most 100 for readability. */
  get textColumns(): number {
    return this.isStdoutTty ? Math.min(Math.max(this.columns, minTextColumns), maxTextColumns) : defaultColumns;
  }

  get rows(): number {
    return process.stdout.rows || 24;
  }

  /** Removes control characters and line breaks, so that `writeText` can safely print the line to stdout. */
  safeLine(line: string): string {
    return this.#plain(line, this.isStdoutTty).replaceAll('\n', ' ');
  }

  /** Colours for stdout. */
  get paint(): Paint {
    return paintFor(this.#hasColours(this.isStdoutTty));
  }

  /** Colours for stderr. */
  get messagePaint(): Paint {
    return paintFor(this.#hasColours(this.isStderrTty));
  }

  /** Writes to stdout without removing control characters. Resolves when the stream accepts more. */
  async writeText(data: string): Promise<void> {
    this.#handleStdoutErrors();
    if (process.stdout.write(data)) return;
    await new Promise<void>((resolve) => process.stdout.once('drain', resolve));
  }

  /** Resolves when the system has taken all that was written to stdout, or its reader has gone. */
  async flush(): Promise<void> {
    if (process.stdout.writableLength === 0) return;
    this.#handleStdoutErrors();
    await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  }

  /** Writes text of a model to stdout. If stdout is a terminal, control characters are removed. */
  writeUntrusted(data: string): Promise<void> {
    return this.writeText(this.isStdoutTty ? plain(data) : data);
  }

  /**
   * Writes a line to stdout. Control characters are removed here and in the methods below, because any server may have
   * sent a part of the text.
   */
  writeLine(data: string): Promise<void> {
    return this.writeText(`${this.#plain(data, this.isStdoutTty)}\n`);
  }

  async writeLines(lines: readonly string[]): Promise<void> {
    for (const line of lines) await this.writeLine(line);
  }

  writeJson(value: unknown): Promise<void> {
    return this.writeLine(plainJson(value));
  }

  /** Writes a line to stderr. */
  message(line: string): void {
    process.stderr.write(`${this.#plain(line, this.isStderrTty)}\n`);
  }

  /**
   * Writes text to stderr. If stderr is a terminal, lines are wrapped between words; text that users copy must use
   * `message`.
   */
  sentences(text: string, style = (line: string) => line): void {
    const columns = Math.min(process.stderr.columns || defaultColumns, maxTextColumns);
    for (const line of text.split('\n'))
      for (const part of this.isStderrTty ? wrapped(line, columns) : [line]) this.message(style(part));
  }

  /** Writes to stderr without ending the line. */
  showPrompt(prompt: string): void {
    process.stderr.write(prompt);
  }

  /** Width of stderr in columns. */
  get messageColumns(): number {
    return process.stderr.columns || defaultColumns;
  }

  /** Replaces the current line of stderr, if that is a terminal. */
  showProgress(line: string): void {
    const shown = clip(this.#plain(line, this.isStderrTty), (process.stderr.columns || defaultColumns) - 1); // a wrapped line could not be replaced
    if (this.isStderrTty) process.stderr.write(`\r\u001b[K${shown}`);
  }

  get stdin(): AsyncIterable<Buffer> {
    return process.stdin;
  }

  /** Reads stdin to its end. */
  readStdin(): Promise<string> {
    return text(process.stdin);
  }

  /** Prompts for one line at the terminal without an echo. Throws an InterruptedError at Ctrl-C. */
  async readSecret(prompt: string): Promise<string> {
    const discarded = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = createInterface({ input: process.stdin, output: discarded, terminal: true, historySize: 0 });
    this.showPrompt(prompt); // the echo is off by now, so that an early line is not shown
    try {
      return await new Promise<string>((resolve, reject) => {
        lines.once('line', resolve);
        lines.once('SIGINT', () => reject(new InterruptedError()));
        lines.once('close', () => resolve(''));
      });
    } finally {
      lines.close();
      this.message('');
    }
  }

  /** Handles SIGINT. Until the handler is disposed, SIGINT does not end the process. */
  onInterrupt(handler: () => void): Disposable {
    process.on('SIGINT', handler);
    return { [Symbol.dispose]: () => void process.off('SIGINT', handler) };
  }

  /**
   * Reads lines from stdin; at a terminal with editing and history. While `isQuiet` returns true, nothing is echoed.
   */
  openLines(isQuiet: () => boolean): Interface {
    const echo = new Writable({
      write: (chunk, _encoding, done) => {
        if (!isQuiet()) process.stderr.write(chunk);
        done(); // immediate, so that the echo stays in order with messages
      },
    });
    // readline wraps lines at the width of its output stream.
    Object.defineProperty(echo, 'columns', { get: () => process.stderr.columns });
    const { editsLines } = this;
    return createInterface({ input: process.stdin, terminal: editsLines, ...(editsLines && { output: echo }) });
  }

  /** Removes control characters. Escape sequences for colours remain if the stream has colours. */
  #plain(text: string, isTerminal: boolean): string {
    return this.#hasColours(isTerminal) ? plainButPaint(text) : plain(text);
  }

  #hasColours(isTerminal: boolean): boolean {
    return isTerminal && !this.#env.NO_COLOR && this.#env.TERM !== 'dumb';
  }

  /**
   * Ends the process if stdout fails. Node ignores SIGPIPE: otherwise, `prompt-relay ask … | head -1` would end with a
   * stack trace.
   */
  #handleStdoutErrors(): void {
    if (this.#handlesStdoutErrors) return;
    this.#handlesStdoutErrors = true;
    process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (code !== 'EPIPE')
        this.message(`${this.messagePaint.red('prompt-relay:')} cannot write to stdout: ${message}`);
      process.exit(code === 'EPIPE' ? exitCodes.brokenPipe : exitCodes.output);
    });
  }
}
