import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { basename, delimiter, resolve } from 'node:path';
import type { ModelEntry } from '../../../shared/api/models.js';
import { withResolvers } from '../../../shared/async.js';
import type { Clock } from '../../../shared/clock.js';
import type { Environment } from '../../../shared/config/config.js';
import { RelayError } from '../../../shared/errors.js';
import type { ReadinessTrigger, Verdict } from '../../../shared/health.js';
import {
  type Adapter,
  type Capabilities,
  type CommandLine,
  type Consult,
  type Consultation,
  type DecoderEvent,
  type Exit,
  filePlace,
  type LaunchOptions,
  type ProgramVersion,
  type Protocol,
  plainLaunch,
  type TrialEnv,
  type TurnEvent,
  unknownUsage,
} from '../contract/adapter.js';
import type { CallbackPort, CallbackRequest } from '../contract/callbacks.js';
import type { CliProcess } from './cli-process.js';
import { programFault } from './program-file.js';

export interface KnownProgram {
  readonly path: string;
  /** Configured arguments, which precede the arguments of a launch. */
  readonly leading: readonly string[];
  readonly programVersion: ProgramVersion;
  /** Identity of the program file; differs after a change of the file. */
  readonly fingerprint: string;
  /** Keys of the launches used so far; an entry lives as long as its launch options. */
  readonly keys: WeakMap<LaunchOptions, LaunchKey>;
}

/** Hash of program, arguments and files of a start. Launches with equal keys can share a process. */
export type LaunchKey = string;

/**
 * Returns the key of a launch, a hash that is cached for each launch: a system text may be megabytes, and keys are
 * compared at every change.
 */
export function launchKeyOf({ programVersion, fingerprint, keys }: KnownProgram, launch: LaunchOptions): LaunchKey {
  const known = keys.get(launch);
  if (known !== undefined) return known;
  const plan = JSON.stringify([fingerprint, programVersion.version, programVersion.plan(launch, 'system')]);
  const key = createHash('sha256').update(plan).digest('base64');
  keys.set(launch, key);
  return key;
}

/**
 * Returns the key of a launch; null if the adapter cannot plan it. A job with this launch then fails with the reason.
 */
export function plannedKeyOf(program: KnownProgram, launch: LaunchOptions): LaunchKey | null {
  try {
    return launchKeyOf(program, launch);
  } catch (error) {
    if (error instanceof RelayError) return null;
    throw error;
  }
}

/** Runs the program at this path to answer a question about itself, such as its version. */
export type ConsultProgram = (path: string, ...asked: Parameters<Consult>) => Promise<Consultation>;

/** Facts about one program file. */
interface Learned extends Pick<KnownProgram, 'fingerprint' | 'keys'> {
  readonly programVersion: Promise<ProgramVersion>;
  /** First query that needed only arguments, such as `--version`, with its answer; null before one. */
  readonly question: { readonly args: readonly string[]; readonly answer: Consultation } | null;
}

/**
 * Owns the path of the model CLI's program file, and its abilities, which are learned once for each file. The file may
 * be a launcher such as a script or `node`, which does not change with the program that it starts. Each later check
 * therefore repeats a query, and a different answer means a different program.
 */
export class CliProgram {
  readonly #adapter: Adapter;
  readonly #searchPath: string;
  readonly #consult: ConsultProgram;
  #learned: Learned | null = null;
  #programVersion: ProgramVersion | null = null;

  constructor(adapter: Adapter, searchPath: string, consult: ConsultProgram) {
    this.#adapter = adapter;
    this.#searchPath = searchPath;
    this.#consult = consult;
  }

  /** Version of the program, as last found; null before that, or if the program reports none. */
  get version(): string | null {
    return this.#programVersion?.version ?? null;
  }

  /** Features of the program beside text, as last found; null before that. */
  get extras(): Capabilities | null {
    return this.#programVersion?.extras ?? null;
  }

  /**
   * Returns the program and its arguments for a launch. Until the program has been found, only the configured command
   * is known.
   */
  commandLine(launch: LaunchOptions): readonly string[] {
    return [...this.#adapter.command, ...(this.#programVersion?.plan(launch, 'system').args ?? [])];
  }

  /**
   * Finds the program and its version. Reads the file's status in every call, because a CLI may be installed, updated
   * or removed at any time. Rejects with `spawn_error`.
   */
  async findProgram(): Promise<KnownProgram> {
    const [name, ...leading] = this.#adapter.command;
    const found = await findProgram(name, this.#searchPath, this.#learned?.fingerprint);
    if (found.kind !== 'found') throw cannotStart(name, found.kind);
    const { path, fingerprint } = found;
    if (this.#learned?.fingerprint !== fingerprint) this.#learned = this.#learn(path, fingerprint);
    const { keys } = this.#learned;
    const programVersion = await this.#learned.programVersion;
    this.#programVersion = programVersion;
    return { path, leading, programVersion, fingerprint, keys };
  }

  /**
   * Checks whether jobs can run: the program exists and reports that it is ready. If `loginFault` returns other than
   * undefined, the program is not started, because its start could renew the login. `consult` runs the program with the
   * login to check. Rejects with `spawn_error` if the program is missing.
   */
  async checkReadiness(
    trigger: ReadinessTrigger = 'start',
    loginFault: () => Promise<string | null | undefined> = async () => undefined,
    consult: ConsultProgram = this.#consult,
  ): Promise<Verdict> {
    if (this.#programVersion?.isProvisional === true) this.#learned = null;
    const known = trigger === 'start' ? null : this.#learned;
    const { path: pathNow } = await this.findProgram();
    const isOld = known !== null && known === this.#learned;
    if (isOld && (await this.#isReplaced(pathNow, known, trigger === 'forced'))) this.#learned = null;
    const { path, programVersion } = await this.findProgram();
    const { version } = programVersion;
    try {
      const known = await loginFault();
      return {
        version,
        error: known === undefined ? await programVersion.check(this.#consultAt(path, consult)) : known,
      };
    } catch (error) {
      if (!(error instanceof RelayError) || error.code !== 'cli_error') throw error;
      return { version, error: error.message, reason: error.reason };
    }
  }

  /** Returns the models that the program can use; null if it has no list. Rejects with `spawn_error`. */
  async listModels(consult: ConsultProgram = this.#consult): Promise<readonly ModelEntry[] | null> {
    const { path, programVersion } = await this.findProgram();
    return programVersion.listModels(this.#consultAt(path, consult));
  }

  /**
   * Whether the program answers a query differently than before. `isForced`: a program without a known query counts as
   * replaced.
   */
  async #isReplaced(path: string, { question }: Learned, isForced: boolean): Promise<boolean> {
    if (question === null) return isForced;
    const { args, answer } = question;
    // No answer, for example on a busy host, counts as the same answer.
    const now = await this.#consultAt(path)(args).catch(() => answer);
    return now.code !== answer.code || now.stdout !== answer.stdout;
  }

  /** Rejects with `spawn_error` if the kernel cannot start the file. */
  async #checkStartable(path: string): Promise<void> {
    const isOnPath = async (name: string) => (await findProgram(name, this.#searchPath)).kind === 'found';
    const fault = await programFault(path, isOnPath);
    const [name] = this.#adapter.command;
    if (fault !== null)
      throw new RelayError('spawn_error', `the model CLI ${basename(name)} can't be started: ${fault}`);
  }

  #consultAt(path: string, consult: ConsultProgram = this.#consult): Consult {
    const [, ...leading] = this.#adapter.command;
    return (args, ...asked) => consult(path, [...leading, ...args], ...asked);
  }

  #learn(path: string, fingerprint: string): Learned {
    let question: Learned['question'] = null;
    const consult: Consult = async (args, ...input) => {
      const answer = await this.#consultAt(path)(args, ...input);
      if (input.every((part) => part === undefined)) question ??= { args, answer };
      return answer;
    };
    const programVersion = this.#checkStartable(path).then(() => this.#adapter.learn(consult));
    const learned = {
      fingerprint,
      keys: new WeakMap(),
      programVersion,
      get question() {
        return question;
      },
    };
    learned.programVersion.catch(() => {
      if (this.#learned === learned) this.#learned = null; // a failure may be temporary: the next job tries again
    });
    return learned;
  }
}

function cannotStart(name: string, kind: 'missing' | 'not-executable'): RelayError {
  const program = name.split('/').at(-1);
  const why =
    kind === 'missing'
      ? 'is not installed on this host (MODEL_API_CLI, MODEL_API_CLI_COMMAND)'
      : 'may not be executed by the service (MODEL_API_CLI_COMMAND)';
  return new RelayError('spawn_error', `the model CLI ${program} ${why}`);
}

export type FoundProgram =
  | { readonly kind: 'found'; readonly path: string; readonly fingerprint: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-executable' };

/**
 * Finds a program as a shell does: by path if the name contains a slash, else along PATH. The result is absolute,
 * because the program runs in another folder. If the fingerprint equals `known`, the permission is not checked again: a
 * change of mode or owner changes the fingerprint.
 */
export async function findProgram(name: string, searchPath: string, known?: string): Promise<FoundProgram> {
  const candidates = name.includes('/')
    ? [resolve(name)]
    : searchPath.split(delimiter).map((folder) => resolve(folder, name));
  let isThere = false;
  for (const path of candidates) {
    const found = await lookAt(path, known);
    if (found.kind === 'found') return found;
    isThere ||= found.kind === 'not-executable';
  }
  return { kind: isThere ? 'not-executable' : 'missing' };
}

async function lookAt(path: string, known: string | undefined): Promise<FoundProgram> {
  try {
    const file = await stat(path);
    if (!file.isFile()) return { kind: 'missing' };
    const fingerprint = [path, file.ino, file.size, file.mtimeMs, file.ctimeMs].join(':');
    if (fingerprint !== known) await access(path, constants.X_OK);
    return { kind: 'found', path, fingerprint };
  } catch (error) {
    return { kind: (error as NodeJS.ErrnoException).code === 'EACCES' ? 'not-executable' : 'missing' };
  }
}

const fallbackPath = '/usr/local/bin:/usr/bin:/bin';

/** Returns the search path for programs. An empty PATH would mean the folder in which the service was started. */
export function searchPathOf(env: Environment): string {
  return env.PATH || fallbackPath;
}

const defaultLimitMs = 10_000;
/**
 * Time limit for a question about the program that is written to its stdin: some programs need seconds to start and to
 * answer, and twice as long on a busy host.
 */
const stdinLimitMs = 20_000;
/** Largest output to store, characters. A list of models may have 750,000. */
const maxLength = 4 * 1024 * 1024;
/** Largest output after a question on stdin. It must be small: each new piece causes a search of the whole output. */
const maxStdinAnswerLength = 1024 * 1024;

/**
 * Runs a question about the program as a turn. The answer is the output of the program until its exit, or until
 * `isEnough` accepts it.
 */
export class ConsultedProgram implements Pick<ProgramVersion, 'protocol'> {
  readonly #isEnough: ((stdout: string) => boolean | string) | undefined;
  readonly limitMs: number;
  code: number | null = null;
  stdout = '';
  readonly #received = withResolvers<string>();
  /** Resolves with the body of the first request to the callback of a trial. */
  readonly received = this.#received.promise;

  /** With `isEnough`, stdin stays open until it returns true; a text that it returns is written to stdin. */
  constructor(isEnough?: (stdout: string) => boolean | string) {
    this.#isEnough = isEnough;
    this.limitMs = isEnough === undefined ? defaultLimitMs : stdinLimitMs;
  }

  /** Handles a request to the callback of a trial, which gets no answer. */
  receive({ body }: Pick<CallbackRequest, 'body'>): void {
    this.#received.resolve(body);
  }

  protocol(): Protocol {
    const stdin = this.#isEnough === undefined ? 'end' : 'keep-open';
    const exit = ({ code }: Exit): TurnEvent[] => {
      this.code = code;
      return [end];
    };
    return {
      writer: { write: ({ text }) => ({ text, stdin }) },
      decoder: { hasBegun: true, read: (chunk) => this.#read(chunk), exit },
    };
  }

  #read(chunk: string): DecoderEvent[] {
    if (this.stdout.length < maxLength) this.stdout += chunk;
    if (this.#isEnough === undefined) return [];
    if (this.stdout.length > maxStdinAnswerLength) return [end];
    const verdict = this.#isEnough(this.stdout);
    if (typeof verdict === 'string') return verdict === '' ? [] : [{ type: 'reply', text: verdict }];
    return verdict ? [end] : [];
  }
}

/** Opens the callback of a trial, and returns the variables that lead the program's requests to it. */
export async function openTrial(
  callbacks: Pick<CallbackPort, 'open'>,
  program: ConsultedProgram,
  trialEnv: TrialEnv,
): Promise<Disposable & { readonly env: Readonly<Record<string, string>> }> {
  const callback = await callbacks.open({ requested: (request) => program.receive(request), abandoned: () => {} });
  return { env: trialEnv(callback), [Symbol.dispose]: () => callback.close() };
}

/** Returns the arguments and files for a question about the program. `place`: private path for the text `file`. */
export function consultPlan(args: readonly string[], file: string | undefined, place: string): CommandLine {
  if (file === undefined) return { args, files: [] };
  return { args: args.map((arg) => arg.replace(filePlace, place)), files: [{ path: place, text: file }] };
}

const end: TurnEvent = { type: 'turn-end', text: null, model: null, usage: unknownUsage };
const noSink = { write: () => {}, hidesThoughts: true, hasEnough: false, isFull: false, room: async () => {} };

/**
 * Script that runs a program whose stdin never ends and whose output goes nowhere, so that the program notices nothing
 * if the service is killed. The first argument is the beginning of its stdin. The shell remains until the program exits.
 */
const detachedScript =
  'mkfifo -m 600 stdin && exec 3<>stdin && rm stdin && printf "%s" "$1" >&3 && shift && "$@" <&3 >/dev/null 2>&1 3>&-; exit $?';

/** Returns the command that runs a program independently of the pipes to this process. */
export function detached(program: string, args: readonly string[], input: string): [string, readonly string[]] {
  return ['/bin/sh', ['-c', detachedScript, 'sh', input, program, ...args]];
}

/** Runs a started program until it exits or `isDone` resolves, then ends it. Never rejects. */
export async function untilExit(process: CliProcess, isDone: Promise<void>): Promise<void> {
  const turn = { ...plainLaunch(null), text: '', history: [] };
  const exited = process.turn(turn, noSink, new AbortController().signal).catch(() => {});
  await Promise.race([exited, isDone]);
  await process.end('done');
}

/**
 * Returns the answer of a started program, and ends it. Rejects with `spawn_error` if the program does not answer
 * within its time limit.
 */
export async function consultation(
  process: CliProcess,
  programVersion: ConsultedProgram,
  input: string,
  clock: Clock,
): Promise<Consultation> {
  const controller = new AbortController();
  const late = new RelayError('spawn_error', 'the model CLI did not answer a query about itself in time');
  const stopTimer = clock.after(programVersion.limitMs, () => controller.abort(late));
  try {
    const turn = process.turn({ ...plainLaunch(null), text: input, history: [] }, noSink, controller.signal);
    const request = await Promise.race([turn.then(() => undefined), programVersion.received]);
    const { code, stdout } = programVersion;
    return { code, stdout, ...(request !== undefined && { request }) };
  } finally {
    stopTimer();
    await process.end('done');
  }
}
