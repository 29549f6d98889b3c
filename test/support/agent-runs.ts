import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { AcpClient } from './acp-client.js';
import { isAlive, readOfProcess } from './processes.js';
import { until } from './until.js';

/** Where and how a coding agent runs. */
export interface Situation {
  /** The program, and what stands before all arguments. */
  readonly command: readonly string[];
  /** With a HOME that no other program has. */
  readonly env: Readonly<Record<'HOME', string>> & Readonly<Record<string, string>>;
  /** An empty folder. */
  readonly work: string;
  readonly model: string;
}

export interface Ran {
  readonly code: number | null;
  /** What it has written for its user. */
  readonly output: string;
}

/** Says these texts in one conversation. Resolves with what its user sees after each. */
export type Chat = (situation: Situation, said: readonly string[]) => Promise<string[]>;

/** So that it asks nobody but the model. */
export const loopbackOnly = {
  PATH: process.env.PATH ?? '',
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
};

const runLimitMs = 60_000;

/** Runs it to its end. Whatever it has left behind is ended too. */
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
    // it is gone already
  }
}

/** Rejects where a process of the agent goes on living, in a group of its own. */
export async function untilGone({ env }: Pick<Situation, 'env'>): Promise<void> {
  await until(async () => (await processesOf(env.HOME)).length === 0, `all processes of ${env.HOME} to be gone`);
}

/** Living processes with this HOME. */
async function processesOf(home: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && isAlive(Number(name)));
  const environs = await Promise.all(pids.map((pid) => readOfProcess(pid, 'environ')));
  return pids.filter((_, at) => environs[at]?.split('\0').includes(`HOME=${home}`));
}

/** The program runs once for each text. */
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

/** As an agent of an editor. */
export async function chatAsEditor({ command, env, work, model }: Situation, said: readonly string[]) {
  await using client = new AcpClient([...command, '--acp'], work, env);
  const session = await client.begin(work, model);
  const seen: string[] = [];
  for (const each of said) seen.push(await client.prompt(session, each));
  return seen;
}
