import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../basics/folder.js';
import { script } from '../service/service.js';

/** Blocks the answers of a model CLI while it is closed. */
export interface AnswerGate extends AsyncDisposable {
  /** Command line of a program that answers with its prompt while the gate is open. */
  readonly command: string;
  open(): Promise<void>;
  close(): Promise<void>;
}

/** Creates a closed gate. */
export async function createAnswerGate(): Promise<AnswerGate> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'open');
  return {
    command: script('waits-for-file.pl', path),
    open: () => writeFile(path, ''),
    close: () => rm(path, { force: true }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
