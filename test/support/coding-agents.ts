import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { withResolvers } from '../../src/shared/async.js';
import { temporaryFolder } from './folder.js';
import { cacheFor, installNode, installOnce, npmInstall } from './install-once.js';
import { root } from './sources.js';

/** An agent from npm, in the newest version when this was written. */
export interface AgentPackage {
  readonly name: string;
  readonly version: string;
  /** The program in `node_modules`; one in JavaScript is run by this very node. */
  readonly program: string;
}

export const agentPackages = {
  opencode: { name: 'opencode-ai', version: '1.18.33', program: 'opencode-linux-x64/bin/opencode' },
  qwen: { name: '@qwen-code/qwen-code', version: '0.15.10', program: '@qwen-code/qwen-code/cli.js' },
} as const satisfies Readonly<Record<string, AgentPackage>>;

export type PackagedAgent = keyof typeof agentPackages;

/** The path of the program, installed with npm where it is not there yet. */
export async function installPackage(cache: string, { name, version, program }: AgentPackage): Promise<string> {
  const folder = await installOnce(cacheFor(cache), version, (building) => npmInstall(building, `${name}@${version}`));
  return join(folder, 'node_modules', program);
}

/** The command line of the agent. */
export async function installAgent(agent: PackagedAgent): Promise<string> {
  const program = await installPackage(agent, agentPackages[agent]);
  return program.endsWith('.js') ? `'${process.execPath}' '${program}'` : `'${program}'`;
}

export const codingAgents = ['opencode', 'Continue', 'pi', 'Cline'] as const;
export type CodingAgent = (typeof codingAgents)[number];

interface Situation {
  /** The program, and what stands before all arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** An empty folder. */
  readonly work: string;
  readonly model: string;
}

interface AgentForm {
  readonly package: AgentPackage;
  /** Of the Node that runs it. */
  readonly node?: string;
  /** Files in its HOME; null stands for what docs/sdks.md shows. */
  readonly files: Readonly<Record<string, string | null>>;
  /** So that it asks nobody but the model. */
  readonly env: Readonly<Record<string, string>>;
  /** Says these texts in one conversation. Resolves with what its user sees after each. */
  readonly chat: (situation: Situation, said: readonly string[]) => Promise<string[]>;
}

/** The newest on npm when this was written; of pi, the newest of which npm has all packages. */
const forms: Readonly<Record<CodingAgent, AgentForm>> = {
  opencode: {
    package: agentPackages.opencode,
    files: { '.config/opencode/opencode.json': null },
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
    chat: chatByRuns((said, isFirst) => ['run', ...(isFirst ? [] : ['--continue']), said]),
  },
  Continue: {
    package: { name: '@continuedev/cli', version: '1.5.47', program: '@continuedev/cli/dist/cn.js' },
    files: { '.continue/config.yaml': null },
    env: { CONTINUE_TELEMETRY_ENABLED: '0' },
    chat: chatByRuns((said, isFirst) => [...(isFirst ? [] : ['--resume']), '-p', said]),
  },
  pi: {
    package: {
      name: '@earendil-works/pi-coding-agent',
      version: '0.87.1',
      program: '@earendil-works/pi-coding-agent/dist/bundle/cli.js',
    },
    node: '24.21.0',
    files: { '.pi/agent/models.json': null },
    env: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    chat: chatByRuns((said, isFirst, model) => [
      ...['--model', `relay/${model}`],
      ...(isFirst ? [] : ['--continue']),
      ...['-p', said],
    ]),
  },
  Cline: {
    package: { name: '@cline/cli-linux-x64', version: '3.0.65', program: '@cline/cli-linux-x64/bin/cline' },
    files: { '.cline/data/settings/global-settings.json': '{"telemetryOptOut":true,"autoUpdateEnabled":false}' },
    // The first one, so that it leaves no process behind; the others are those of docs/sdks.md.
    env: { CLINE_SESSION_BACKEND_MODE: 'local', CLINE_PROVIDER: 'openai-compatible', CLINE_API_KEY: 'any' },
    chat: chatAsEditor,
  },
};

const page = readFileSync(join(root, 'docs', 'sdks.md'), 'utf8');
const section = /^## Coding agents$(.*?)^## /ms.exec(page)?.[1] ?? '';
const documented = { url: 'http://127.0.0.1:5051', model: 'default' };

/** The settings that docs/sdks.md shows for this program. */
function snippetOf(agent: CodingAgent): string {
  const [, snippet] = new RegExp(`^${agent},.*?^\`\`\`\\w+\\n(.*?)^\`\`\``, 'ms').exec(section) ?? [];
  if (snippet === undefined) throw new Error(`docs/sdks.md has no settings for ${agent}`);
  return snippet;
}

/** The command line of the program, installed with npm where it is not there yet. */
export async function installCodingAgent(agent: CodingAgent): Promise<string[]> {
  const { package: packaged, node } = forms[agent];
  const program = await installPackage(agent.toLowerCase(), packaged);
  if (!program.endsWith('.js')) return [program];
  return [node === undefined ? process.execPath : join(await installNode(node), 'node'), program];
}

/** A program with a HOME of its own. */
export interface SettledAgent extends AsyncDisposable {
  /** Says these texts in one conversation. Resolves with what its user sees after each. */
  chat(...said: readonly string[]): Promise<string[]>;
}

/** Gives the program the settings of docs/sdks.md, with this address and this model. */
export async function settleAgent(agent: CodingAgent, url: string, model = documented.model): Promise<SettledAgent> {
  const { files, env, chat } = forms[agent];
  const command = await installCodingAgent(agent);
  const folder = await temporaryFolder();
  const [home, work] = [join(folder.path, 'home'), join(folder.path, 'work')];
  const snippet = snippetOf(agent).replaceAll(documented.url, url).replaceAll(documented.model, model);
  await mkdir(work);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), content ?? snippet);
  }
  const situation = { command, env: { ...loopbackOnly, HOME: home, TMPDIR: folder.path, ...env }, work, model };
  const isCommand = !Object.values(files).includes(null);
  if (isCommand) await run(situation, snippet.trim().split(' ').slice(1));
  return {
    chat: (...said) => chat(situation, said),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const loopbackOnly = {
  PATH: process.env.PATH ?? '',
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
};

const runLimitMs = 60_000;

/** What it writes, whatever it exits with. */
async function run({ command: [program = '', ...before], env, work }: Situation, args: readonly string[]) {
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe'];
  const limit = { timeout: runLimitMs, killSignal: 'SIGKILL' as const };
  const child = spawn(program, [...before, ...args], { cwd: work, env, stdio, detached: true, ...limit });
  const written = [child.stdout, child.stderr].map((stream) => text(stream as Readable));
  await once(child, 'exit');
  killGroup(child.pid as number);
  return (await Promise.all(written)).join('');
}

/** What it has left behind. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it is gone already
  }
}

/** The program runs once for each text. */
function chatByRuns(argsFor: (said: string, isFirst: boolean, model: string) => string[]): AgentForm['chat'] {
  return async (situation, said) => {
    const seen: string[] = [];
    for (const each of said) seen.push(await run(situation, argsFor(each, seen.length === 0, situation.model)));
    return seen;
  };
}

/** Its command line can't be given a further turn without a terminal. */
async function chatAsEditor({ command, env, work, model }: Situation, said: readonly string[]): Promise<string[]> {
  await using client = new AcpClient([...command, '--acp'], work, env);
  const session = await client.begin(work, model);
  const seen: string[] = [];
  for (const each of said) seen.push(await client.prompt(session, each));
  return seen;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: {
    readonly update?: { readonly sessionUpdate: string; readonly content?: { readonly text?: string } };
  };
  readonly result?: Result;
  readonly error?: { readonly message: string };
}

type Result = Readonly<Record<string, unknown>>;
type Call = ReturnType<typeof withResolvers<Result>>;

/** An editor, as far as it chats with an agent of the Agent Client Protocol. Owns the agent's process. */
class AcpClient implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #calls: Call[] = [];
  #said = '';

  constructor([program = '', ...args]: readonly string[], cwd: string, env: Readonly<Record<string, string>>) {
    this.#process = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#process.on('exit', () => {
      for (const call of this.#calls) call.reject(new Error('the agent has exited'));
    });
    createInterface({ input: this.#process.stdout as NodeJS.ReadableStream }).on('line', (line) => this.#read(line));
  }

  /** Begins a session in this folder with this model. Returns its id. */
  async begin(cwd: string, modelId: string): Promise<string> {
    await this.#call('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await this.#call('session/new', { cwd, mcpServers: [] });
    await this.#call('session/set_model', { sessionId, modelId });
    return sessionId as string;
  }

  /** What it shows for this prompt: the answer, or the error. */
  async prompt(sessionId: string, text: string): Promise<string> {
    this.#said = '';
    const asked = this.#call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
    return asked.then(() => this.#said).catch((error: Error) => this.#said + error.message);
  }

  #call(method: string, params: object): Promise<Result> {
    const call = withResolvers<Result>();
    const id = this.#calls.push(call) - 1;
    this.#send({ id, method, params });
    return call.promise;
  }

  #read(line: string): void {
    const { id, method, params, result, error } = JSON.parse(line) as Message;
    const { sessionUpdate, content } = params?.update ?? {};
    if (sessionUpdate === 'agent_message_chunk') this.#said += content?.text ?? '';
    if (method !== undefined && id !== undefined) this.#send({ id, error: { code: -32601, message: 'not here' } });
    if (method !== undefined || id === undefined) return;
    if (error === undefined) this.#calls[id]?.resolve(result ?? {});
    else this.#calls[id]?.reject(new Error(error.message));
  }

  #send(message: object): void {
    this.#process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}
