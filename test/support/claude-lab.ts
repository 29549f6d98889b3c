import { join } from 'node:path';
import { claudeAdapter } from '../../src/primary/cli/adapters/claude/adapter.js';
import {
  type CommandLine,
  type LaunchOptions,
  type ProgramVersion,
  plainLaunch,
} from '../../src/primary/cli/contract/adapter.js';
import { type ClaudeHome, type ClaudeSession, consultIn, makeClaudeHome, startClaude } from './claude-session.js';
import { type MessagesApi, startMessagesApi } from './messages-api-stub.js';

type Variables = Readonly<Record<string, string>>;

export const apiKey = { ANTHROPIC_API_KEY: 'sk-ant-test' };
export const loginToken = { CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test' };

/** One version of the real claude, as the adapter has learned it with this credential. */
export interface KnownClaude {
  readonly program: string;
  readonly programVersion: ProgramVersion;
  readonly env: Variables;
}

export async function learnClaude(program: string, credential: Variables): Promise<KnownClaude> {
  await using lodging = await makeClaudeHome();
  const adapter = claudeAdapter([program], { extraArgs: [], given: credential, hasToken: false });
  const programVersion = await adapter.learn(consultIn(lodging, program));
  return { program, programVersion, env: { ...adapter.env, ...credential } };
}

/** A stub of the API, and one process after another that asks it. */
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

  /** How this version is started. Each plan has a file of its own. */
  plan(launch: LaunchOptions = plainLaunch(null)): CommandLine {
    return this.#claude.programVersion.plan(launch, join(this.home.path, `system-${++this.#started}`));
  }

  /** Ends the process before it. */
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
