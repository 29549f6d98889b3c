import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type RedisArgument = string | number | Buffer;
export type ScriptArguments = Readonly<Record<string, RedisArgument>>;

/** The files in scripts/ whose functions are called; common.lua stands before each of them. */
const scriptFiles = ['answers', 'conversations', 'counters', 'jobs', 'upkeep'] as const;
export type ScriptFile = (typeof scriptFiles)[number];

/** A file and a function in it, such as `jobs.start`. */
export type ScriptName = `${ScriptFile}.${string}`;

/** First line of a file that needs the functions of others. */
const included = /^-- with: (.*)\n/;

/** The text of each script file, with all that it needs. */
export async function readScripts(): Promise<ReadonlyMap<ScriptFile, string>> {
  const read = (name: string) => readFile(join(__dirname, 'scripts', `${name}.lua`), 'utf8');
  const texts = scriptFiles.map(async (name) => {
    const text = await read(name);
    const before = included.exec(text)?.[1]?.split(' ') ?? [];
    const parts = [...(await Promise.all(['common', ...before].map(read))), text, 'return scripts[ARGV[1]]()'];
    return [name, parts.join('\n')] as const;
  });
  return new Map(await Promise.all(texts));
}

/** ARGV of a call: see common.lua. */
export function argumentsOf(
  name: ScriptName,
  prefix: string,
  notAfter: number,
  args: ScriptArguments,
): readonly RedisArgument[] {
  return [name.slice(name.indexOf('.') + 1), prefix, notAfter, ...Object.entries(args).flat()];
}
