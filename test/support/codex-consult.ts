import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Consult, filePlace } from '../../src/primary/cli/contract/adapter.js';

/** Asks the real program what it is, in this environment, whose HOME is private. */
export function consultCodex(program: string, env: Readonly<Record<string, string>>): Consult {
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
