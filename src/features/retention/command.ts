import { createHash } from 'node:crypto';
import { appendFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type CommandArguments,
  type CommandContext,
  CommandError,
  clientFor,
  exitCodes,
  show,
  usageError,
} from '../../command/base/command.js';
import { formatCount } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { exportRoute, type Retention, retentionBody, route } from './shared.js';

/** Resolves with the exit code. */
export async function showRetention(args: CommandArguments, context: CommandContext): Promise<number> {
  const body = await (await clientFor(args, context)).getState(route, retentionBody);
  return show(args, context.terminal, body, (paint) => renderRetention(body, paint));
}

function renderRetention({ data, store, is_stored: isStored, provider }: Retention, paint: Paint): string[] {
  const stored = data.filter(({ place }) => place !== 'nowhere');
  const others = data.filter(({ place }) => place === 'nowhere').map(({ kind }) => kind);
  return [
    `The store is ${store}.`,
    ...(isStored ? [] : [paint.bold('Nothing of this client is stored (store=off), except usage and log.')]),
    ...stored.flatMap((entry) => ['', ...linesOf(entry, paint)]),
    ...(others.length > 0 ? ['', escaped(`Not stored with these settings: ${others.join(', ')}.`)] : []),
    ...['', escaped(provider)],
  ];
}

function linesOf(entry: Retention['data'][number], paint: Paint): string[] {
  const rows = [
    ['what', entry.content],
    ['where', entry.place],
    ['how long', entry.kept],
    ['who reads it', entry.readers.join(', ')],
    ['export', entry.export],
    ['delete', entry.deletion],
    ['settings', entry.variables.join(', ')],
  ] as const;
  const shown = rows.filter(([, text]) => text !== null && text !== '');
  return [paint.bold(escaped(entry.kind)), ...shown.map(([label, text]) => escaped(`  ${label.padEnd(13)} ${text}`))];
}

/** Line of an export, as far as the command reads it. */
interface ReadLine {
  readonly kind?: unknown;
  readonly id?: unknown;
  readonly base64?: unknown;
  readonly sha256?: unknown;
  readonly counts?: Readonly<Record<string, number>>;
}

/** Ids of files that are safe as names of files. */
const safeId = /^file-[A-Za-z0-9_-]{1,100}$/;

/** Writes everything that the service has of the client to a new folder. Resolves with the exit code. */
export async function exportData(args: CommandArguments, context: CommandContext): Promise<number> {
  const named = args.value('to');
  if (named === undefined) throw usageError('export', 'name a new folder with --to, such as --to my-data');
  const folder = resolve(named);
  const client = await clientFor(args, context);
  await make(folder);
  const hash = createHash('sha256');
  for await (const line of client.lines(exportRoute)) {
    const read = readLine(line);
    await appendFile(join(folder, 'data.jsonl'), `${line}\n`, { mode: 0o600 });
    if (read.kind === 'end') return finish(folder, read, hash.digest('hex'), context);
    hash.update(`${line}\n`);
    if (read.kind === 'file_data') await addToFile(folder, read);
  }
  throw new CommandError(exitCodes.failed, `export: ${folder} is not complete: the service has ended early`);
}

/** Reads a line; empty for the rest of an export that was cut off. */
function readLine(line: string): ReadLine {
  try {
    return JSON.parse(line) as ReadLine;
  } catch {
    return {};
  }
}

/** Makes a folder that does not exist yet, with one for files. */
async function make(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
    await mkdir(join(folder, 'files'), { mode: 0o700 });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const cause = code === 'EEXIST' ? 'it already exists' : message;
    throw new CommandError(exitCodes.output, `export: ${folder} cannot be made: ${cause}`);
  }
}

/** Adds a piece to the copy of a file. Its name is its id: a client has chosen the other name. */
async function addToFile(folder: string, { id, base64 }: ReadLine): Promise<void> {
  if (!safeId.test(String(id))) return;
  await appendFile(join(folder, 'files', String(id)), Buffer.from(String(base64), 'base64'), { mode: 0o600 });
}

async function finish(
  folder: string,
  { sha256, counts = {} }: ReadLine,
  digest: string,
  { terminal }: CommandContext,
): Promise<number> {
  if (sha256 !== digest) throw new CommandError(exitCodes.failed, `export: ${folder} is damaged: its SHA-256 differs`);
  const found = Object.entries(counts).map(([kind, count]) => formatCount(count, kind));
  await terminal.writeLines([
    `${escaped(folder)}: ${found.length === 0 ? 'nothing is stored' : escaped(found.join(', '))}`,
    `SHA-256 ${digest}`,
  ]);
  return exitCodes.ok;
}
