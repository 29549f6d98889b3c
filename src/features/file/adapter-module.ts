import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CreateCliAdapter } from '../../primary/cli/contract/adapter-family.js';
import type { Clock } from '../../shared/clock.js';
import { ConfigFault } from '../../shared/config/config.js';
import { CallbackServer } from '../acp/callback-server.js';
import { fileAdapter } from './adapter.js';
import { adapterKit } from './kit.js';

/** Creates the adapter of a file. Rejects with a ConfigFault for a faulty one. */
export const createFromFile: CreateCliAdapter = (choice, settings) =>
  fileCreator(adapterLoader(settings.clock))(choice, settings);

/** Returns a function that creates the adapter of a file, which `load` loads. */
export function fileCreator(load: (path: string) => Promise<unknown>): CreateCliAdapter {
  return async ({ kind: path, command }, { config, givenVariables, clock }) => {
    const options = { command, extraArgs: config.cliArgs, env: givenVariables, kit: adapterKit };
    try {
      return { ...fileAdapter(await load(path), options), callbacks: CallbackServer.of(clock) };
    } catch (error) {
      const variable = config.clis.length > 0 ? 'MODEL_API_CLIS' : 'MODEL_API_CLI';
      throw new ConfigFault([`${variable}: ${path}: ${(error as Error).message}`]);
    }
  };
}

/** Owner and mode of a file. */
interface FileFacts {
  readonly uid: number;
  readonly mode: number;
}

const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * Loads a file whose code runs as the service. Rejects with a description of the fault unless the file belongs to root
 * or the service user, and no other user can write or replace it.
 */
export async function importAdapterModule(
  path: string,
  importModule: (path: string) => Promise<unknown> = importFile,
): Promise<unknown> {
  const file = await realpath(path);
  const uid = process.geteuid?.() ?? 0;
  const facts = await stat(file);
  if (!facts.isFile()) throw new Error('is not a file');
  if (!isTrustedOwner(facts, uid)) throw new Error('must belong to root or to the user of the service: chown it');
  if ((facts.mode & writableByOthers) !== 0) throw new Error('can be written by other users: chmod go-w it');
  for (const folder of foldersAbove(file)) {
    const isSafe = isSafeFolder(await stat(folder), uid);
    if (!isSafe) throw new Error(`can be replaced by other users, who can write to ${folder}`);
  }
  return importModule(file).catch((error: unknown) => {
    throw new Error(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  });
}

/**
 * Time limit for loading a file. While a file awaits a promise that never settles, nothing keeps the service running,
 * and it would exit silently.
 */
const loadLimitMs = 10_000;

/** Returns a loader like `importAdapterModule`, with a time limit. */
export function adapterLoader(clock: Clock, load: (path: string) => Promise<unknown> = importAdapterModule) {
  return (path: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const late = new Error(`cannot be loaded: it takes longer than ${loadLimitMs} ms`);
      const stopTimer = clock.after(loadLimitMs, () => reject(late));
      load(path).then(resolve, reject).finally(stopTimer);
    });
}

function importFile(path: string): Promise<unknown> {
  return import(pathToFileURL(path).href);
}

function isTrustedOwner({ uid }: FileFacts, serviceUid: number): boolean {
  return uid === 0 || uid === serviceUid;
}

/** Whether other users cannot replace a file in the folder. In a sticky folder, only its owner can. */
function isSafeFolder(facts: FileFacts, serviceUid: number): boolean {
  return isTrustedOwner(facts, serviceUid) && ((facts.mode & writableByOthers) === 0 || (facts.mode & sticky) !== 0);
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [folder, ...foldersAbove(folder)];
}
