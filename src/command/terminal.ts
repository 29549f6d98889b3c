import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Environment } from '../shared/config/config.js';
import { exitCodes } from './exit-codes.js';
import { type Paint, paintFor, plain, plainJson } from './render/paint.js';

/** What a shell reports of a program whose reader has gone: 128 and the number of SIGPIPE. */
const exitReaderGone = 141;

/** The person, or the script, that the command speaks with: data goes to stdout, talk to stderr. */
export class Terminal {
  readonly #env: Environment;
  #isGuarded = false;

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Whether stdout is looked at, rather than read by a program. */
  get isScreen(): boolean {
    return process.stdout.isTTY === true;
  }

  /** Whether talk is read by a person, and not kept in a file. */
  get isTalkative(): boolean {
    return process.stderr.isTTY === true;
  }

  /** Whether lines are typed; else they come from a file or a program. */
  get isTyped(): boolean {
    return process.stdin.isTTY === true;
  }

  /** Whether typed lines are edited here, which takes a terminal to echo them on; else the terminal itself does it. */
  get isEdited(): boolean {
    return this.isTyped && this.isTalkative;
  }

  /** A terminal that has not been told its size says 0. */
  get columns(): number {
    return process.stdout.columns || 80;
  }

  get rows(): number {
    return process.stdout.rows || 24;
  }

  get paint(): Paint {
    return paintFor(this.#hasColours(this.isScreen));
  }

  get talkPaint(): Paint {
    return paintFor(this.#hasColours(this.isTalkative));
  }

  /** Data, as it is. Resolves when there is room for more. */
  async write(data: string): Promise<void> {
    this.#guard();
    if (process.stdout.write(data)) return;
    await new Promise<void>((resolve) => process.stdout.once('drain', resolve));
  }

  /** Text from elsewhere: as it is for a program, without control characters for a screen. */
  writeForeign(data: string): Promise<void> {
    return this.write(this.isScreen ? plain(data) : data);
  }

  line(data: string): Promise<void> {
    return this.write(`${data}\n`);
  }

  json(value: unknown): Promise<void> {
    return this.line(plainJson(value));
  }

  say(talk: string): void {
    process.stderr.write(`${talk}\n`);
  }

  /** Talk that is answered on its own line. */
  ask(talk: string): void {
    process.stderr.write(talk);
  }

  /** A word on the line where the cursor is, that the next one replaces; nothing for a log file. */
  hint(talk: string): void {
    if (this.isTalkative) process.stderr.write(`\r\u001b[K${talk}`);
  }

  /** The whole of stdin. */
  readAll(): Promise<string> {
    return text(process.stdin);
  }

  /** Ctrl-C, where no line is being typed. The signal no longer ends the program until this is disposed. */
  onInterrupt(act: () => void): Disposable {
    process.on('SIGINT', act);
    return { [Symbol.dispose]: () => void process.off('SIGINT', act) };
  }

  /** Lines from stdin, edited and remembered where they are typed. `isQuiet` tells when nothing may be echoed. */
  openLines(isQuiet: () => boolean): Interface {
    const echo = new Writable({
      write: (chunk, _encoding, done) => {
        if (!isQuiet()) process.stderr.write(chunk);
        done(); // at once: what is said directly must not overtake what is echoed
      },
    });
    // Where a line wraps depends on the width, and readline looks for it on its output.
    Object.defineProperty(echo, 'columns', { get: () => process.stderr.columns });
    const { isEdited } = this;
    return createInterface({ input: process.stdin, terminal: isEdited, ...(isEdited && { output: echo }) });
  }

  #hasColours(isTerminal: boolean): boolean {
    return isTerminal && !this.#env.NO_COLOR && this.#env.TERM !== 'dumb';
  }

  /** `prompt-relay ask … | head -1` ends as any other program does there. */
  #guard(): void {
    if (this.#isGuarded) return;
    this.#isGuarded = true;
    process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (code !== 'EPIPE') this.say(`${this.talkPaint.red('prompt-relay:')} can't write its output: ${message}`);
      process.exit(code === 'EPIPE' ? exitReaderGone : exitCodes.output);
    });
  }
}
