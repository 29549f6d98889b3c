import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '../basics/folder.js';
import { root } from '../documents/sources.js';
import {
  type Chat,
  chatAsEditor,
  chatByRuns,
  loopbackOnly,
  type Ran,
  run,
  type Situation,
  untilGone,
} from './agent-runs.js';
import { installClaude } from './claude-service.js';
import { installCodex } from './codex-service.js';
import { cacheFor, installNode, installOnce, npmInstall } from './install-once.js';
import type { ToolCall } from './messages-api-stub.js';

/** Agent from npm, in the newest version when this was written. */
export interface AgentPackage {
  readonly name: string;
  readonly version: string;
  /** Path of the program in `node_modules`; this Node runs programs in JavaScript. */
  readonly program: string;
}

export const agentPackages = {
  opencode: { name: 'opencode-ai', version: '1.18.33', program: 'opencode-linux-x64/bin/opencode' },
  qwen: { name: '@qwen-code/qwen-code', version: '0.24.4', program: '@qwen-code/qwen-code/cli.js' },
} as const satisfies Readonly<Record<string, AgentPackage>>;

export type PackagedAgent = keyof typeof agentPackages;

/** Returns the path of the program, installed with npm if missing. */
export async function installPackage(cache: string, { name, version, program }: AgentPackage): Promise<string> {
  const folder = await installOnce(cacheFor(cache), version, (building) => npmInstall(building, `${name}@${version}`));
  return join(folder, 'node_modules', program);
}

/** Returns the command line of the agent, installed if missing. */
export async function installAgent(agent: PackagedAgent): Promise<string> {
  const program = await installPackage(agent, agentPackages[agent]);
  return program.endsWith('.js') ? `'${process.execPath}' '${program}'` : `'${program}'`;
}

export const codingAgents = ['Claude Code', 'opencode', 'Continue', 'pi', 'Cline', 'codex', 'qwen-code'] as const;
export type CodingAgent = (typeof codingAgents)[number];

/** Calls with which the model writes and reads a file, with the agent's tools. */
export interface FileTools {
  readonly write: (path: string, text: string) => ToolCall;
  readonly read: (path: string) => ToolCall;
}

interface AgentForm {
  /** Newest version on npm when this was written; of pi, the newest version with all its packages on npm. */
  readonly package: AgentPackage | (() => Promise<string>);
  /** Version of the Node that runs the agent; by default the Node of the tests. */
  readonly node?: string;
  /**
   * Files in HOME by path; null for the settings in docs/sdks.md. If no file is null, these settings are a command
   * line.
   */
  readonly files: Readonly<Record<string, string | null>>;
  /** Variables that stop all requests except to the model. */
  readonly env: Readonly<Record<string, string>>;
  readonly chat: Chat;
  /** Arguments that start a task, with tools allowed. */
  readonly task: (said: string, model: string) => string[];
  readonly tools: FileTools;
}

const forms: Readonly<Record<CodingAgent, AgentForm>> = {
  'Claude Code': {
    package: () => installClaude(),
    files: {},
    env: {},
    chat: chatByRuns((said, isFirst) => [...(isFirst ? [] : ['--continue']), '-p', said]),
    task: (said) => ['-p', said, '--allowedTools', 'Write', 'Read'],
    tools: {
      write: (path, text) => ({ name: 'Write', input: { file_path: path, content: text } }),
      read: (path) => ({ name: 'Read', input: { file_path: path } }),
    },
  },
  opencode: {
    package: agentPackages.opencode,
    files: { '.config/opencode/opencode.json': null },
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
    chat: chatByRuns((said, isFirst) => ['run', ...(isFirst ? [] : ['--continue']), said]),
    task: (said) => ['run', said],
    tools: {
      write: (path, text) => ({ name: 'write', input: { filePath: path, content: text } }),
      read: (path) => ({ name: 'read', input: { filePath: path } }),
    },
  },
  Continue: {
    package: { name: '@continuedev/cli', version: '1.5.47', program: '@continuedev/cli/dist/cn.js' },
    files: { '.continue/config.yaml': null },
    env: { CONTINUE_TELEMETRY_ENABLED: '0' },
    chat: chatByRuns((said, isFirst) => [...(isFirst ? [] : ['--resume']), '-p', said]),
    task: (said) => ['--auto', '-p', said],
    tools: {
      write: (path, text) => ({ name: 'Write', input: { filepath: path, content: text } }),
      read: (path) => ({ name: 'Read', input: { filepath: path } }),
    },
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
    task: (said, model) => ['--model', `relay/${model}`, '-p', said],
    tools: {
      write: (path, text) => ({ name: 'write', input: { path, content: text } }),
      read: (path) => ({ name: 'read', input: { path } }),
    },
  },
  Cline: {
    package: { name: '@cline/cli-linux-x64', version: '3.0.65', program: '@cline/cli-linux-x64/bin/cline' },
    files: { '.cline/data/settings/global-settings.json': '{"telemetryOptOut":true,"autoUpdateEnabled":false}' },
    // The first variable prevents leftover processes; docs/sdks.md has the others.
    env: { CLINE_SESSION_BACKEND_MODE: 'local', CLINE_PROVIDER: 'openai-compatible', CLINE_API_KEY: 'any' },
    chat: chatAsEditor, // the command line continues only in a terminal
    task: (said) => [said],
    tools: {
      write: (path, text) => ({ name: 'editor', input: { path, new_text: text } }),
      read: (path) => ({ name: 'read_files', input: { files: [{ path }] } }),
    },
  },
  codex: {
    package: () => installCodex(),
    files: { '.codex/config.toml': null },
    env: {},
    chat: chatByRuns((output, isFirst) => [
      'exec',
      ...(isFirst ? [] : ['resume', '--last']),
      '--skip-git-repo-check',
      output,
    ]),
    task: (said) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', said],
    tools: {
      write: (path, text) => ({ name: 'exec_command', input: { cmd: `printf %s '${text}' > '${path}'` } }),
      read: (path) => ({ name: 'exec_command', input: { cmd: `cat '${path}'` } }),
    },
  },
  'qwen-code': {
    package: agentPackages.qwen,
    files: {},
    env: {},
    chat: chatByRuns((said, isFirst) => [...(isFirst ? [] : ['--continue']), '-p', said]),
    task: (said) => ['--yolo', '-p', said],
    tools: {
      write: (path, text) => ({ name: 'write_file', input: { file_path: path, content: text } }),
      read: (path) => ({ name: 'read_file', input: { file_path: path } }),
    },
  },
};

const page = readFileSync(join(root, 'docs', 'sdks.md'), 'utf8');
const section = /^## Coding agents$(.*?)^## /ms.exec(page)?.[1] ?? '';
const documented = { url: 'http://127.0.0.1:5051', model: 'default' };

/** Returns the settings that docs/sdks.md shows for this program. */
function snippetOf(agent: CodingAgent): string {
  const [, snippet] = new RegExp(`^(?:For )?${agent}\\b.*?^\`\`\`\\w+\\n(.*?)^\`\`\``, 'ms').exec(section) ?? [];
  if (snippet === undefined) throw new Error(`docs/sdks.md has no settings for ${agent}`);
  return snippet;
}

/** Returns the leading variables of a command line, and the arguments after its program. */
function readCommandLine(line: string) {
  const words = line.trim().split(' ');
  const start = words.findIndex((word) => !word.includes('='));
  const env = Object.fromEntries(words.slice(0, start).map((word) => word.split('=', 2) as [string, string]));
  return { env, args: words.slice(start + 1) };
}

/** Returns the command line of the program, installed with npm if missing. */
export async function installCodingAgent(agent: CodingAgent): Promise<string[]> {
  const { package: packaged, node } = forms[agent];
  if (typeof packaged === 'function') return [await packaged()];
  const program = await installPackage(agent.toLowerCase(), packaged);
  if (!program.endsWith('.js')) return [program];
  return [node === undefined ? process.execPath : join(await installNode(node), 'node'), program];
}

/** Configured agent with a private HOME. */
export interface SettledAgent extends AsyncDisposable {
  readonly tools: FileTools;
  readonly home: string;
  /** Working directory. */
  readonly work: string;
  /** Sends these texts in one conversation. Resolves with the output that the user sees after each. */
  chat(...said: readonly string[]): Promise<string[]>;
  /** Runs a task with tools. Rejects if a process is left behind. */
  task(said: string): Promise<Ran>;
}

/** Configures the program as in docs/sdks.md, with this address and this model. */
export async function settleAgent(agent: CodingAgent, url: string, model = documented.model): Promise<SettledAgent> {
  const { files, env, chat, task, tools } = forms[agent];
  const command = await installCodingAgent(agent);
  const folder = await temporaryFolder();
  const [home, work] = [join(folder.path, 'home'), join(folder.path, 'work')];
  const snippet = snippetOf(agent).replaceAll(documented.url, url).replaceAll(documented.model, model);
  await Promise.all([mkdir(work), mkdir(home)]);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), content ?? snippet);
  }
  const line = Object.values(files).includes(null) ? { env: {}, args: [] } : readCommandLine(snippet);
  const all = { ...loopbackOnly, HOME: home, TMPDIR: folder.path, ...line.env, ...env };
  const situation: Situation = { command, env: all, work, model };
  if (line.args.length > 0) await run(situation, line.args);
  return {
    tools,
    home,
    work,
    chat: (...said) => chat(situation, said),
    task: async (said) => {
      const ran = await run(situation, task(said, model));
      await untilGone(situation);
      return ran;
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
