import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './folder.js';
import { script } from './service.js';

/** Holds back the answers of a model CLI until it is opened. */
export interface Gate extends AsyncDisposable {
  /** The command line of a program that answers with its prompt while the gate is open. */
  readonly command: string;
  open(): Promise<void>;
  close(): Promise<void>;
}

/** A gate that is closed. */
export async function createGate(): Promise<Gate> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'open');
  return {
    command: script('waits-for-file.pl', path),
    open: () => writeFile(path, ''),
    close: () => rm(path),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
