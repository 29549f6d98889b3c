import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LaunchPlan } from '../adapter.js';

/** What one process has on disk: an empty working directory of its own (0700), and the files of its launch (0600). */
export class ProcessHome {
  readonly workingDirectory: string;
  /** Where the system text is put, beside the working directory. */
  readonly systemPath: string;
  #files: LaunchPlan['files'] = [];

  constructor(runtimeDirectory: string, serial: number) {
    this.workingDirectory = join(runtimeDirectory, String(serial));
    this.systemPath = `${this.workingDirectory}.system`;
  }

  async create(files: LaunchPlan['files']): Promise<void> {
    this.#files = files;
    await mkdir(this.workingDirectory, { mode: 0o700 });
    for (const { path, text } of files) await writeFile(path, text, { mode: 0o600, flag: 'wx' });
  }

  /** Never rejects: what can't be removed now is removed with the runtime directory. */
  async remove(): Promise<void> {
    await rmdir(this.workingDirectory).catch(() => remove(this.workingDirectory));
    for (const { path } of this.#files) await remove(path);
  }
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true }).catch(() => {});
}
