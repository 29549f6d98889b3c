import { execFile } from 'node:child_process';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../basics/folder.js';
import { root } from '../documents/sources.js';

/** An answer, or an event of one, and the type that the vendor's SDK has for it. */
export interface TypedAnswer {
  readonly name: string;
  readonly type: string;
  readonly value: unknown;
}

export type Fields = Record<string, unknown>;

/** Where our answers differ from the types, and why. */
export interface Difference {
  readonly why: string;
  /** Gives an object of an answer the form of the types. Returns whether it had another one. */
  readonly change: (value: Fields) => boolean;
}

type Fits = (value: Readonly<Fields>) => boolean;

/** Fields that our answers do not have, with what the types would take. */
export function leftOut(why: string, fits: Fits, fields: Readonly<Fields>): Difference {
  const change = (value: Fields) => {
    const missing = Object.keys(fields).filter((name) => !Object.hasOwn(value, name));
    if (!fits(value) || missing.length === 0) return false;
    for (const name of missing) value[name] = fields[name];
    return true;
  };
  return { why, change };
}

/** Fields that the types do not have, or not with null. */
export function added(why: string, fits: Fits, ...names: readonly string[]): Difference {
  const change = (value: Fields) => {
    const known = names.filter((name) => Object.hasOwn(value, name));
    if (!fits(value) || known.length === 0) return false;
    for (const name of known) delete value[name];
    return true;
  };
  return { why, change };
}

/** Types for the answers; the SDKs have none for the lines of a batch, and read the dates of Ollama as they are. */
const imports = `import type OpenAI from 'openai';
import type { CursorPageResponse, PageResponse } from 'openai/core/pagination';
import type Anthropic from '@anthropic-ai/sdk';
import type { PageCursorResponse, PageResponse as AnthropicPage } from '@anthropic-ai/sdk/core/pagination';
import type * as Ollama from 'ollama';
type Dated<T> = { [K in keyof T]: T[K] extends Date ? string : T[K] };
type OllamaChat = Dated<Ollama.ChatResponse>;
type OllamaShow = Omit<Dated<Ollama.ShowResponse>, 'model_info'> & { model_info: Record<string, unknown> };
type OpenAiPage<T> = CursorPageResponse<T> & { object: 'list'; first_id: string | null; last_id: string | null };
type FilePage = PageCursorResponse<Anthropic.FileMetadata>;
interface OpenAiLine<Status, Body> {
  id: string;
  custom_id: string | null;
  response: { status_code: Status; request_id: string; body: Body };
  error: null;
}
type OpenAiUnsent = { id: string; custom_id: string | null; response: null; error: { code: string; message: string } };
`;

export const compilerOptions = {
  ...{ module: 'nodenext', target: 'es2023', types: [], lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'] },
  ...{ strict: true, noEmit: true, skipLibCheck: true },
};

/**
 * The faults that the compiler finds if the answers are constants of these types: fields that are missing, unknown, or of
 * another type. `modules`: the folder with the packages.
 */
export async function typeFaults(answers: readonly TypedAnswer[], modules: string): Promise<readonly string[]> {
  await using folder = await temporaryFolder();
  await symlink(modules, join(folder.path, 'node_modules'));
  const constants = answers.map(
    ({ type, value }, at) => `export const answer${at}: ${type} = ${JSON.stringify(value)};`,
  );
  await writeFile(join(folder.path, 'answers.mts'), imports + constants.join('\n'));
  await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['answers.mts'] }));
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout } = await promisify(execFile)(compiler, ['--pretty', 'false', '-p', folder.path], {
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { readonly stdout: string }) => error);
  const first = imports.split('\n').length;
  return stdout
    .trim()
    .split(/\n(?! )/)
    .filter((fault) => fault !== '')
    .map((fault) => {
      const line = Number(/^[^(]*\((\d+),/.exec(fault)?.[1]);
      return `${answers[line - first]?.name}: ${fault.replace(/^.*?error /, '')}`;
    });
}

/** The answers without these differences. Each of them must be there. */
export function withoutDifferences(
  answers: readonly TypedAnswer[],
  differences: readonly Difference[],
): readonly TypedAnswer[] {
  const found = new Set<Difference>();
  const typed = JSON.parse(JSON.stringify(answers), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    for (const each of differences) if (each.change(value as Fields)) found.add(each);
    return value;
  }) as readonly TypedAnswer[];
  const unusedReasons = differences.filter((each) => !found.has(each)).map(({ why }) => why);
  if (unusedReasons.length > 0) throw new Error(`no answer differs so: ${unusedReasons.join('; ')}`);
  return typed;
}
