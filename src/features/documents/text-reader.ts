import type { Launcher } from '../../primary/cli/process/launcher.js';
import { findProgram } from '../../primary/cli/process/program.js';
import type { ProcessTree } from '../../primary/cli/terminate/process-tree.js';
import { cached } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, yieldToEventLoop } from '../../shared/clock.js';
import { cliError, type RelayError } from '../../shared/errors.js';
import type { FileDocument } from '../../shared/job.js';
import { documentTable, type ReadType } from '../../shared/tables/document-types.js';
import { wellFormed } from '../../shared/text/well-formed.js';

/** Returns the message for a document whose text no program on this host reads. */
export function readerMissing(type: ReadType): string {
  const { name, reader } = documentTable[type];
  return `a ${name} needs ${reader.program} on this host, because the model CLI takes none: the operator can install the package ${reader.packageName}`;
}

/** Readers of documents by their types. */
export type TextReaders<Part extends keyof TextReader> = Readonly<Record<ReadType, Pick<TextReader, Part>>>;

const limitMs = 20_000;
/** Interval between two searches of a missing program. */
const searchMs = 5000;
/** Address space of the program, KiB. A PDF of 32 MB needs less than a third. */
const memoryKib = 512 * 1024;
/** Largest text, bytes: far more than the context of any model. */
const maxTextBytes = 4 * 1024 * 1024;

/** Runs the program with its limits: memory, processor time, no files, no core dump. */
const limited = `ulimit -v ${memoryKib}; ulimit -t ${limitMs / 1000}; ulimit -f 0; ulimit -c 0; exec "$0" "$@"`;

/** Number of texts that are remembered, and their total length. */
const maxTexts = 64;
const maxRemembered = 16 * 1024 * 1024;

/**
 * Reads the text of documents of one type, for model CLIs that take none. Each document is read by a separate process in
 * a separate containment. The reader remembers texts by client, because clients send the same documents again with every
 * request.
 */
export class TextReader {
  readonly #type: ReadType;
  readonly #launcher: Pick<Launcher, 'launch'>;
  readonly #searchPath: string;
  readonly #clock: Clock;
  /** Texts by client and digest, least recently used first. */
  readonly #texts = new Map<string, string>();
  #length = 0;
  #isMissing = false;
  readonly #searchAgain: () => Promise<string | null>;

  constructor(type: ReadType, launcher: Pick<Launcher, 'launch'>, searchPath: string, clock: Clock) {
    this.#type = type;
    this.#launcher = launcher;
    this.#searchPath = searchPath;
    this.#clock = clock;
    this.#searchAgain = cached(() => this.findReader(), searchMs, clock);
  }

  /** Whether the program was missing at the last search. If so, searches again for later requests, every 5 s at most. */
  get isMissing(): boolean {
    if (this.#isMissing) void this.#searchAgain();
    return this.#isMissing;
  }

  /** Returns the path of the program; null if it is not installed. */
  async findReader(): Promise<string | null> {
    const { program } = documentTable[this.#type].reader;
    const found = await findProgram(program, this.#searchPath);
    this.#isMissing = found.kind !== 'found';
    return found.kind === 'found' ? found.path : null;
  }

  /** Returns the text of a document. Rejects with `cli_error` if no text was found, or a limit was exceeded. */
  async readText(document: FileDocument, client: ClientText, signal: AbortSignal): Promise<string> {
    const key = `${client}\0${document.digest}`;
    const text = this.#texts.get(key) ?? (await this.#run(document, signal));
    this.#remember(key, text);
    return text;
  }

  #remember(key: string, text: string): void {
    this.#forget(key);
    this.#texts.set(key, text);
    this.#length += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#texts.size <= maxTexts && this.#length <= maxRemembered) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#length -= this.#texts.get(key)?.length ?? 0;
    this.#texts.delete(key);
  }

  async #run(document: FileDocument, signal: AbortSignal): Promise<string> {
    const path = await this.findReader();
    if (path === null) throw cliError('request_refused', readerMissing(this.#type));
    const { program, options } = documentTable[this.#type].reader;
    const plan = () => ({ args: ['-c', limited, path, ...options], files: [] });
    const tree = await this.#launcher.launch({ program: '/bin/sh', plan }, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw unreadable(document, `${program} could not be started: ${(error as Error).message}`);
    });
    const output = outputOf(tree, document);
    let fail: (reason: unknown) => void = () => {};
    const failed = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const stopTimer = this.#clock.after(limitMs, () =>
      fail(unreadable(document, `it takes longer than ${limitMs / 1000} s`)),
    );
    const onAbort = () => fail(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      void write(tree, document.data);
      return await Promise.race([output, failed]);
    } finally {
      stopTimer();
      signal.removeEventListener('abort', onAbort);
      output.catch(() => {}); // the end of the program closes its output
      await tree.end(0, 'done');
    }
  }
}

/** UTF-16 units of base64 that are decoded at a time; a multiple of four. */
const pieceLength = 256 * 1024;

/** Writes a file in base64 to the program. The program may exit before it has read all of it. */
async function write({ child: { stdin } }: ProcessTree, data: string): Promise<void> {
  stdin.on('error', () => {}); // EPIPE; the exit code shows whether the program has failed
  const closed = new Promise<void>((resolve) => stdin.once('close', resolve));
  for (let at = 0; at < data.length && !stdin.destroyed; at += pieceLength) {
    const isFull = !stdin.write(Buffer.from(data.slice(at, at + pieceLength), 'base64'));
    if (isFull) await Promise.race([new Promise<void>((resolve) => stdin.once('drain', resolve)), closed]);
    else await yieldToEventLoop();
  }
  stdin.end();
}

async function outputOf({ child }: ProcessTree, document: FileDocument): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  child.stderr.resume();
  for await (const piece of child.stdout as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxTextBytes) throw unreadable(document, `its text is larger than ${maxTextBytes / 1024 ** 2} MB`);
  }
  const { code, signal } = await child.exited;
  if (code !== 0)
    throw unreadable(
      document,
      code === null
        ? `${documentTable[document.mediaType].reader?.program} was ended by ${signal}`
        : 'it may be broken',
    );
  const text = wellFormed(Buffer.concat(pieces).toString('utf8').replaceAll('\f', '\n')); // a form feed ends each page
  if (text.trim() === '') throw unreadable(document, 'it has no text, and the model CLI does not see its pages');
  return text;
}

/** Makes the error for a document whose text cannot be used. */
function unreadable({ name, mediaType }: FileDocument, reason: string): RelayError {
  return cliError(
    'request_refused',
    `the ${documentTable[mediaType].name} ${name === '' ? '' : `${name} `}cannot be read: ${reason}`,
  );
}
