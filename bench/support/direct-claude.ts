import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { claudeAdapter } from '../../src/primary/cli/adapters/claude/adapter.js';
import {
  type LaunchOptions,
  type ProgramVersion,
  plainLaunch,
  type Tool,
  type ToolOffer,
} from '../../src/primary/cli/contract/adapter.js';
import { type ClaudeHome, consultIn } from '../../test/support/agents/claude-session.js';
import { processorMs } from './processor-time.js';
import { prompt } from './task.js';

export interface DirectRun {
  /** Time from the start to the first byte of output, in milliseconds. */
  readonly firstByteMs: number;
  /** Time from the start to the result, in milliseconds, without the exit. */
  readonly resultMs: number;
}

const quietMs = 150;

/** Starts claude directly, without the relay. */
export class DirectClaude {
  readonly #program: string;
  readonly #home: ClaudeHome;
  readonly #env: Readonly<Record<string, string>>;
  readonly #programVersion: ProgramVersion;
  #runs = 0;

  static async find(program: string, home: ClaudeHome, env: Readonly<Record<string, string>>): Promise<DirectClaude> {
    const adapter = claudeAdapter([program], { extraArgs: [], givenVariables: env, hasToken: false });
    const programVersion = await adapter.learn(consultIn(home, program));
    return new DirectClaude(program, home, home.environment({ ...adapter.env, ...env }), programVersion);
  }

  private constructor(
    program: string,
    home: ClaudeHome,
    env: Readonly<Record<string, string>>,
    programVersion: ProgramVersion,
  ) {
    this.#program = program;
    this.#home = home;
    this.#env = env;
    this.#programVersion = programVersion;
  }

  /** Runs `claude -p` with the flags of the relay, for one prompt on stdin. */
  async run(system: string | null = null): Promise<DirectRun> {
    const launch = { ...plainLaunch(null), system };
    const begun = performance.now();
    const child = await this.#start(launch);
    const firstByte = once(child.stdout, 'data').then(() => performance.now() - begun);
    child.stdin.end(this.#inputFor(launch));
    const resultMs = await nextResult(child).then(() => performance.now() - begun);
    await once(child, 'exit');
    return { firstByteMs: await firstByte, resultMs };
  }

  /** Runs `claude -p "…"` without any other flag, as users type it. Resolves with the milliseconds until the answer. */
  async runAsTyped(): Promise<number> {
    const options = { cwd: this.#home.workingDirectory, env: this.#env };
    const begun = performance.now();
    const child = spawn(this.#program, ['-p', prompt], options);
    const exited = once(child, 'exit');
    child.stdin.end();
    child.stderr.resume();
    await once(child.stdout, 'data');
    const answeredMs = performance.now() - begun;
    await exited;
    return answeredMs;
  }

  /**
   * Starts a claude with the flags of the relay, and waits until it is idle. With tools, the model may call them in its
   * first turn.
   */
  async wait(tools: readonly Tool[] = []): Promise<WaitingClaude> {
    const child = await this.#start(plainLaunch(null));
    const offer: ToolOffer | null = tools.length === 0 ? null : { tools, choice: 'auto', isParallel: true };
    const waiting = new WaitingClaude(child, this.#inputFor(plainLaunch(null), offer));
    await waiting.quiet();
    return waiting;
  }

  #inputFor(launch: LaunchOptions, offer: ToolOffer | null = null): string {
    const turn = { ...launch, text: prompt, history: [], ...(offer && { offer }) };
    return this.#programVersion.protocol().writer.write(turn, 1).text;
  }

  async #start(launch: LaunchOptions): Promise<ChildProcessWithoutNullStreams> {
    const { args, files } = this.#programVersion.plan(launch, `${this.#home.path}/${++this.#runs}`);
    for (const { path, text } of files) await writeFile(path, text, { mode: 0o600 });
    const child = spawn(this.#program, [...args], { cwd: this.#home.workingDirectory, env: this.#env });
    child.stderr.resume();
    child.once('exit', () => {
      for (const { path } of files) void rm(path, { force: true });
    });
    return child;
  }
}

/** Started claude that takes turns without the relay. */
export class WaitingClaude implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #input: string;

  constructor(child: ChildProcessWithoutNullStreams, input: string) {
    this.#child = child;
    this.#input = input;
  }

  /** Takes a turn. Resolves with the milliseconds from the first written byte to the result. */
  async turn(): Promise<number> {
    const begun = performance.now();
    this.#child.stdin.write(this.#input);
    await nextResult(this.#child);
    return performance.now() - begun;
  }

  /**
   * Takes a turn in which the model calls tools, and answers each call with this text at once. Resolves with the
   * milliseconds until the result.
   */
  async loop(text: string): Promise<number> {
    const begun = performance.now();
    this.#child.stdin.write(this.#input);
    await nextResult(this.#child, (line) => {
      const answer = answerTo(line, text);
      if (answer !== null) this.#child.stdin.write(answer);
    });
    return performance.now() - begun;
  }

  /** Resolves when the process uses no more processor time. */
  async quiet(): Promise<void> {
    for (let before = -1, spent = 0; spent !== before || spent === 0; ) {
      before = spent;
      await new Promise((resolve) => setTimeout(resolve, quietMs));
      spent = await processorMs([this.#child.pid as number]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

interface McpRequest {
  readonly request_id: string;
  readonly request: { readonly message: { readonly id?: unknown; readonly method: string } };
}

/**
 * Returns the answer to a tool call in the CLI's native protocol; null for any other line. The first write contained
 * the rest.
 */
function answerTo(line: string, text: string): string | null {
  if (!line.includes('"method":"tools/call"')) return null;
  const { request_id, request } = JSON.parse(line) as McpRequest;
  const result = { content: [{ type: 'text', text }], isError: false };
  const response = { mcp_response: { jsonrpc: '2.0', id: request.message.id, result } };
  return `${JSON.stringify({ type: 'control_response', response: { subtype: 'success', request_id, response } })}\n`;
}

async function nextResult(
  { stdout }: ChildProcessWithoutNullStreams,
  onLine: (line: string) => void = () => {},
): Promise<void> {
  const lines = createInterface({ input: stdout });
  try {
    await new Promise<void>((resolve, reject) => {
      lines
        .on('line', (line) => (line.includes('"type":"result"') ? resolve() : onLine(line)))
        .on('close', () => reject(new Error('claude ended without a result')));
    });
  } finally {
    lines.close();
  }
}
