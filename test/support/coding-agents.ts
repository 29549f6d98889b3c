import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { AcpClient } from './acp-client.js';
import { type AgentPackage, agentPackages, installPackage } from './agent-programs.js';
import { temporaryFolder } from './folder.js';
import { installNode } from './other-nodes.js';
import { root } from './sources.js';

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
