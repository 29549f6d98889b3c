import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { codexAdapter } from '../../src/features/codex/adapter.js';
import { type Consult, filePlace, plainLaunch } from '../../src/primary/cli/contract/adapter.js';
import { installCodex, startWithCodex, stubKey, toStub } from '../../test/support/agents/codex-service.js';
import { startResponsesApi } from '../../test/support/agents/responses-api-stub.js';
import { temporaryFolder } from '../../test/support/basics/folder.js';
import { asByItself, type BenchedAgent, type OpenAgent } from './agent-bench.js';
import { prompt } from './task.js';

export const codexByHand: BenchedAgent = {
  name: '`codex exec --json -`',
  targets: { ask: 0.3, chat: 0.2 },
  open: openCodex,
};

async function openCodex(): Promise<OpenAgent> {
  const program = await installCodex();
  const api = await startResponsesApi();
  const folder = await temporaryFolder();
  const home = { ...stubKey, PATH: process.env.PATH ?? '', HOME: folder.path, CODEX_HOME: join(folder.path, '.codex') };
  await mkdir(home.CODEX_HOME);
  const adapter = codexAdapter([program], { extraArgs: toStub(api.url), givenVariables: {} });
  const programVersion = await adapter.learn(consultCodex(program, home));
  const { args, files } = programVersion.plan(plainLaunch(null), join(folder.path, 'models.json'));
  for (const { path, text } of files) await writeFile(path, text, { mode: 0o600 });
  const one = ['exec', '--json', '--skip-git-repo-check', '--ephemeral'];
  const typed = [...one, ...toStub(api.url), '-'];
  const closed = [...one, ...args.slice(1), '-'];
  const service = await startWithCodex(api, { env: asByItself });
  return {
    service,
    byHand: () => runOnce(program, typed, home, folder.path),
    byHandClosed: () => runOnce(program, closed, home, folder.path),
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await api.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function runOnce(
  program: string,
  flags: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<number> {
  const begun = performance.now();
  const child = spawn(program, [...flags], { cwd, env });
  const exited = once(child, 'exit');
  child.stderr.resume();
  child.stdin.end(prompt);
  let answeredMs: number | null = null;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"type":"turn.completed"')) answeredMs = performance.now() - begun;
  }
  await exited;
  if (answeredMs === null) throw new Error('codex exec ended without an answer');
  return answeredMs;
}

/** Returns a function that runs the real program to query its properties, in an environment with a private HOME. */
function consultCodex(program: string, env: Readonly<Record<string, string>>): Consult {
  const place = join(env.HOME ?? '', 'consulted.json');
  return async (args, input = '', isEnough, file) => {
    if (file !== undefined) await writeFile(place, file);
    const child = spawn(
      program,
      args.map((arg) => arg.replace(filePlace, place)),
      { env, cwd: env.HOME },
    );
    const closed = once(child, 'close');
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (isEnough?.(stdout) === true) child.kill();
    });
    child.stderr.resume();
    child.stdin.on('error', () => {}).write(input);
    if (isEnough === undefined) child.stdin.end();
    await closed;
    return { code: child.exitCode, stdout };
  };
}
