import { execFile } from 'node:child_process';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../basics/folder.js';
import { programs } from '../service/service.js';
import { compilerOptions } from './typed-answers.js';

type Fields = Readonly<Record<string, unknown>>;

/** A type that an SDK has for a request. */
export interface RequestType {
  readonly type: string;
  /** Values for fields of these names, in whatever object they are. */
  readonly samples: Fields;
}

/** A field that an SDK can send. */
export interface SentField {
  /** Path of the object that has the field, with the kinds of objects in angle brackets. */
  readonly place: string;
  /** Empty for the object itself. */
  readonly name: string;
  /** Fields of a request that has it. Null: the SDK sends it as a header. */
  readonly fields: Fields | null;
}

const imports = `import type OpenAI from 'openai';
import type { InputItemListParams } from 'openai/resources/responses/input-items';
import type Anthropic from '@anthropic-ai/sdk';
import type * as Ollama from 'ollama';
`;

/** Returns the fields of each type of a request, in the order of the types. `modules`: the folder with the packages. */
export async function requestFields(types: readonly RequestType[], modules: string): Promise<SentField[][]> {
  await using folder = await temporaryFolder();
  await symlink(modules, join(folder.path, 'node_modules'));
  const constants = types.map(({ type }, at) => `export declare const request${at}: ${type};`);
  await writeFile(join(folder.path, 'requests.mts'), imports + constants.join('\n'));
  await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['requests.mts'] }));
  const samples = JSON.stringify(types.map((each) => each.samples));
  const args = [join(programs, 'request-fields.mjs'), folder.path, samples];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 ** 2 });
  return JSON.parse(stdout) as SentField[][];
}

/** Answer to a request with a field. `ignored`: the fields that the service reports as ignored. */
export interface FieldAnswer {
  readonly status: number;
  readonly text: string;
  readonly ignored: readonly string[];
}

type Outcome = 'served' | 'refused' | 'ignored' | 'header';

/** Returns the path without the kinds of objects. */
function plainPath(place: string): string {
  return place.replace(/<[^>]*>/g, '');
}

/** Returns what the service does with a field. Throws if the answer names neither the field nor what contains it. */
function outcomeOf({ place, name }: SentField, { status, text, ignored }: FieldAnswer): Outcome {
  const kind = /<([^>]*)>$/.exec(place)?.[1];
  const path = [plainPath(place), name].filter((part) => part !== '').join('.');
  const isWithin = (field: string) => path === field || path.startsWith(`${field}.`);
  const isKind = (field: string) => kind !== undefined && field.endsWith(`.${kind}`);
  if (status < 300) return ignored.some((field) => isWithin(field) || isKind(field)) ? 'ignored' : 'served';
  const names = [...path.split('.'), ...(kind === undefined ? [] : [kind])];
  if (status < 500 && names.some((each) => text.includes(each))) return 'refused';
  throw new Error(`${place} ${name}: ${status} ${text}`);
}

/**
 * Sends a request for each field of a type, except for fields of objects that are refused or ignored as a whole. Returns a
 * line for each object.
 */
export async function outcomes(
  fields: readonly SentField[],
  send: (fields: Fields) => Promise<FieldAnswer>,
): Promise<string[]> {
  const lines = new Map<string, Map<Outcome, string[]>>();
  const closed = new Set<string>();
  const isRead = (path: string) => fields.some(({ place }) => place === path || place.startsWith(`${path}<`));
  for (const field of fields) {
    const { place, name } = field;
    const path = [place, name].filter((part) => part !== '').join('.');
    const isClosed = [...closed].some(
      (each) => place === each || (/^[.<]/.test(place.slice(each.length)) && place.startsWith(each)),
    );
    if (path === '' || isClosed || (name !== '' && isRead(path))) continue;
    const outcome = field.fields === null ? 'header' : outcomeOf(field, await send(field.fields));
    if (name === '' && outcome !== 'served') closed.add(place);
    if (name === '' && outcome === 'served') continue;
    const line = lines.get(place) ?? new Map<Outcome, string[]>();
    lines.set(place, line.set(outcome, [...(line.get(outcome) ?? []), name]));
  }
  return [...lines].map(([place, line]) => {
    const parts = [...line].map(([outcome, names]) => [outcome, ...names.toSorted()].join(' ').trim());
    return `  ${[place, parts.toSorted().join('; ')].filter((part) => part !== '').join(': ')}`;
  });
}
