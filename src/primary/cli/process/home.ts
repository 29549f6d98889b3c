import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LaunchPlan } from '../adapter.js';

/** Two private folders of the service, which may be one. */
export interface ProcessFolders {
  readonly runtimeDirectory: string;
  readonly workDirectory: string;
}

/**
 * What one process has on disk: an empty working directory of its own and a folder for temporary files (0700), which may
 * be one, and the files of its launch (0600).
 */
export class ProcessHome {
  readonly workingDirectory: string;
  readonly temporaryDirectory: string;
  /** Where the system text is put. */
  readonly systemPath: string;
  readonly #folders: ReadonlySet<string>;
  #files: LaunchPlan['files'] = [];

  constructor({ runtimeDirectory, workDirectory }: ProcessFolders, serial: number) {
    this.workingDirectory = join(workDirectory, String(serial));
    this.temporaryDirectory = join(runtimeDirectory, String(serial));
    this.systemPath = `${this.temporaryDirectory}.system`;
    this.#folders = new Set([this.workingDirectory, this.temporaryDirectory]);
  }

  async create(files: LaunchPlan['files']): Promise<void> {
    this.#files = files;
    for (const folder of this.#folders) await mkdir(folder, { mode: 0o700 });
    for (const { path, text } of files) await writeFile(path, text, { mode: 0o600, flag: 'wx' });
  }

  /** Never rejects: what can't be removed now is removed with the folders of the service. */
  async remove(): Promise<void> {
    for (const folder of this.#folders) await rmdir(folder).catch(() => remove(folder));
    for (const { path } of this.#files) await remove(path);
  }
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true }).catch(() => {});
}
