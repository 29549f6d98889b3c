import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../../shared/clock.js';

/** What the kernel says of a file. */
interface FileFacts {
  readonly uid: number;
  readonly mode: number;
}

const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * Loads a file whose code will run as the service. Rejects with what is wrong with it: it must belong to root or to the
 * user of the service, and nobody else may be able to write it, or to put another file in its place.
 */
export async function importAdapterModule(
  path: string,
  importModule: (path: string) => Promise<unknown> = importFile,
): Promise<unknown> {
  const file = await realpath(path);
  const uid = process.geteuid?.() ?? 0;
  const facts = await stat(file);
  if (!facts.isFile()) throw new Error('is no file');
  if (!isOurs(facts, uid)) throw new Error('must belong to root or to the user of the service: chown it');
  if ((facts.mode & writableByOthers) !== 0) throw new Error('can be written by other users: chmod go-w it');
  for (const folder of foldersAbove(file)) {
    const isSafe = isSafeFolder(await stat(folder), uid);
    if (!isSafe) throw new Error(`can be replaced by other users, who can write to ${folder}`);
  }
  return importModule(file).catch((error: unknown) => {
    throw new Error(`can't be loaded: ${error instanceof Error ? error.message : String(error)}`);
  });
}

/** One that awaits what never comes would let the service end without a word, because nothing else keeps it running yet. */
const loadLimitMs = 10_000;

/** As `importAdapterModule`, within a limit of time. */
export function adapterLoader(clock: Clock, load: (path: string) => Promise<unknown> = importAdapterModule) {
  return (path: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const late = new Error(`can't be loaded: it takes longer than ${loadLimitMs} ms`);
      const stopTimer = clock.after(loadLimitMs, () => reject(late));
      load(path).then(resolve, reject).finally(stopTimer);
    });
}

function importFile(path: string): Promise<unknown> {
  return import(pathToFileURL(path).href);
}

function isOurs({ uid }: FileFacts, own: number): boolean {
  return uid === 0 || uid === own;
}

/** In a sticky folder nobody can replace a file of somebody else. */
function isSafeFolder(facts: FileFacts, own: number): boolean {
  return isOurs(facts, own) && ((facts.mode & writableByOthers) === 0 || (facts.mode & sticky) !== 0);
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [folder, ...foldersAbove(folder)];
}
