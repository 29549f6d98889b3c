import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { until } from '../basics/until.js';
import { AcpClient } from '../clients/acp-client.js';
import { allPids, isAlive, readOfProcess } from '../processes/processes.js';

/** Environment of a coding agent under test. */
export interface Situation {
  /** Program and the arguments before all others. */
  readonly command: readonly string[];
  /** Variables, with a private HOME. */
  readonly env: Readonly<Record<'HOME', string>> & Readonly<Record<string, string>>;
  /** Empty working directory. */
  readonly work: string;
  readonly model: string;
}

export interface Ran {
  readonly code: number | null;
  /** Output on stdout and stderr. */
  readonly output: string;
}

/** Sends these texts in one conversation. Resolves with the output that the user sees after each. */
export type Chat = (situation: Situation, said: readonly string[]) => Promise<string[]>;

/** Proxy settings that let the agent reach only loopback, and so only the model. */
export const loopbackOnly = {
  PATH: process.env.PATH ?? '',
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
  npm_config_offline: 'true', // opencode would try for seconds to install a package of 60 MB into each new HOME
};

const runLimitMs = 60_000;

/** Runs the agent until it exits, then kills its process group. */
export async function run({ command: [program = '', ...before], env, work }: Situation, args: readonly string[]) {
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe'];
  const limit = { timeout: runLimitMs, killSignal: 'SIGKILL' as const };
  const child = spawn(program, [...before, ...args], { cwd: work, env, stdio, detached: true, ...limit });
  const written = [child.stdout, child.stderr].map((stream) => text(stream as Readable));
  const [code] = (await once(child, 'exit')) as [number | null];
  killGroup(child.pid as number);
  return { code, output: (await Promise.all(written)).join('') } satisfies Ran;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the group has already exited
  }
}

/** Rejects if a process of the agent survives in another process group. */
export async function untilGone({ env }: Pick<Situation, 'env'>): Promise<void> {
  await until(() => processesOf(env.HOME).length === 0, `all processes of ${env.HOME} to be gone`);
}

/** Returns the living processes with this HOME. */
function processesOf(home: string): number[] {
  return allPids().filter((pid) => isAlive(pid) && readOfProcess(pid, 'environ').split('\0').includes(`HOME=${home}`));
}

/** Returns a chat that runs the program once for each text. */
export function chatByRuns(argsFor: (said: string, isFirst: boolean, model: string) => string[]): Chat {
  return async (situation, said) => {
    const seen: string[] = [];
    for (const each of said) {
      const { output } = await run(situation, argsFor(each, seen.length === 0, situation.model));
      seen.push(output);
    }
    return seen;
  };
}

/** Chats with an agent of the Agent Client Protocol in an editor's role. */
export async function chatAsEditor({ command, env, work, model }: Situation, said: readonly string[]) {
  await using client = new AcpClient([...command, '--acp'], work, env);
  const session = await client.begin(work, model);
  const seen: string[] = [];
  for (const each of said) seen.push(await client.prompt(session, each));
  return seen;
}
