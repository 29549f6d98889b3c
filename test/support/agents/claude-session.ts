import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claudeAdapter } from '../../../src/primary/cli/adapters/claude/adapter.js';
import {
  type CommandLine,
  type Consult,
  type Decoder,
  type DecoderEvent,
  type LaunchOptions,
  type ProgramVersion,
  plainLaunch,
  type QuotaReport,
  type Turn,
  type TurnEnd,
  type TurnFailed,
  type TurnWriter,
} from '../../../src/primary/cli/contract/adapter.js';
import { type MessagesApi, startMessagesApi } from './messages-api-stub.js';

type Environment = Readonly<Record<string, string>>;

export interface Answer {
  readonly deltas: readonly string[];
  readonly thoughts: readonly DecoderEvent[];
  readonly end: TurnEnd | TurnFailed;
}

/** Folders of one claude process: a home with an empty working directory, and a place for other files. */
export class ClaudeHome implements AsyncDisposable {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  get workingDirectory(): string {
    return join(this.path, 'work');
  }

  environment(further: Environment): Environment {
    return { PATH: process.env.PATH ?? '', HOME: this.path, TMPDIR: this.path, ...further };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}

export async function makeClaudeHome(): Promise<ClaudeHome> {
  const home = new ClaudeHome(await mkdtemp(join(tmpdir(), 'prompt-relay-claude-')));
  await mkdir(home.workingDirectory, { mode: 0o700 });
  return home;
}

/** Returns a function that runs the real program for the adapter's questions, such as its version. */
export function consultIn(home: ClaudeHome, program: string): Consult {
  return (args, input = '') =>
    new Promise((resolve) => {
      const options = { env: home.environment({}), cwd: home.workingDirectory, timeout: 20_000 };
      const child = execFile(program, [...args], options, (_, stdout) => resolve({ code: child.exitCode, stdout }));
      child.stdin?.on('error', () => {}).end(input);
    });
}

/** Real claude process that reads and writes the adapter's lines. */
export class ClaudeSession implements AsyncDisposable {
  /** Reports about the account's quota. */
  readonly reports: QuotaReport[] = [];
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #writer: TurnWriter;
  readonly #decoder: Decoder<DecoderEvent>;
  #turns = 0;
  readonly #exited: Promise<unknown>;
  #deltas: string[] = [];
  #thoughts: DecoderEvent[] = [];
  #remainingAnswers: string[] = [];
  #answered: (answer: Answer) => void = () => {};
  #stderr = '';

  constructor(child: ChildProcessWithoutNullStreams, programVersion: ProgramVersion) {
    this.#child = child;
    const { writer, decoder } = programVersion.protocol();
    this.#writer = writer;
    this.#decoder = decoder;
    this.#exited = once(child, 'close');
    child.stdin.on('error', () => {});
    child.stderr.on('data', (chunk) => {
      this.#stderr += chunk;
    });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#take([...this.#decoder.read(chunk)]));
    child.once('close', (code, signal) => this.#take([...this.#decoder.exit({ code, signal, stderr: this.#stderr })]));
  }

  turn(turn: Turn): Promise<Answer> {
    const input = this.#writer.write(turn, ++this.#turns);
    this.#decoder.begin?.(this.#turns);
    return this.send(input.text, input.rest);
  }

  /** Writes raw lines, and waits for the end of their turn. */
  send(text: string, rest: Iterable<string> = []): Promise<Answer> {
    this.#deltas = [];
    this.#thoughts = [];
    this.#remainingAnswers = [...rest];
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#child.stdin.write(text);
    });
  }

  ask(text: string): Promise<Answer> {
    return this.turn({ ...plainLaunch(null), text, history: [] });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  #take(events: readonly DecoderEvent[]): void {
    for (const event of events) {
      if (event.type === 'quota-report') this.reports.push(event);
      else if (event.type === 'input-taken') this.#child.stdin.write(this.#remainingAnswers.shift() ?? '');
      else if (event.type === 'reply') this.#child.stdin.write(event.text);
      else if (event.type === 'text-delta') this.#deltas.push(event.text);
      else if (event.type === 'thought-delta' || event.type === 'thought-end') this.#thoughts.push(event);
      else if (event.type === 'turn-end' || event.type === 'turn-failed')
        this.#answered({ deltas: this.#deltas, thoughts: this.#thoughts, end: event });
    }
  }
}

async function startClaude(
  program: string,
  programVersion: ProgramVersion,
  home: ClaudeHome,
  plan: CommandLine,
  env: Environment,
): Promise<ClaudeSession> {
  for (const file of plan.files) await writeFile(file.path, file.text, { mode: 0o600 });
  const child = spawn(program, [...plan.args], { cwd: home.workingDirectory, env: home.environment(env) });
  return new ClaudeSession(child, programVersion);
}

type Variables = Readonly<Record<string, string>>;

export const apiKey = { ANTHROPIC_API_KEY: 'sk-ant-test' };
export const loginToken = { CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test' };

/** Version of the real claude, learned by the adapter with this credential. */
export interface KnownClaude {
  readonly program: string;
  readonly programVersion: ProgramVersion;
  readonly env: Variables;
}

export async function learnClaude(program: string, credential: Variables): Promise<KnownClaude> {
  await using lodging = await makeClaudeHome();
  const adapter = claudeAdapter([program], { extraArgs: [], givenVariables: credential, hasToken: false });
  const programVersion = await adapter.learn(consultIn(lodging, program));
  return { program, programVersion, env: { ...adapter.env, ...credential } };
}

/** Stub of the API, with one claude process at a time. */
export class ClaudeLab implements AsyncDisposable {
  readonly api: MessagesApi;
  readonly home: ClaudeHome;
  readonly #claude: KnownClaude;
  #session: ClaudeSession | null = null;
  #started = 0;

  constructor(claude: KnownClaude, api: MessagesApi, home: ClaudeHome) {
    this.#claude = claude;
    this.api = api;
    this.home = home;
  }

  /** Returns the command line for these launch options, with a separate file for each plan. */
  plan(launch: LaunchOptions = plainLaunch(null)): CommandLine {
    return this.#claude.programVersion.plan(launch, join(this.home.path, `system-${++this.#started}`));
  }

  /** Starts a process, after ending the previous one. */
  async start(plan: CommandLine = this.plan(), env: Variables = {}): Promise<ClaudeSession> {
    await this.#session?.[Symbol.asyncDispose]();
    const { program, programVersion } = this.#claude;
    const seen = { ...this.#claude.env, ANTHROPIC_BASE_URL: this.api.url, ...env };
    this.#session = await startClaude(program, programVersion, this.home, plan, seen);
    return this.#session;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session?.[Symbol.asyncDispose]();
    await this.home[Symbol.asyncDispose]();
    await this.api.close();
  }
}

export async function openLab(claude: KnownClaude): Promise<ClaudeLab> {
  return new ClaudeLab(claude, await startMessagesApi(), await makeClaudeHome());
}
