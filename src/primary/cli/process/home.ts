import { access, mkdir, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CommandLine, PrivateHome } from '../contract/adapter.js';

/** Two private folders of the service, which may be one. */
export interface ProcessFolders {
  readonly runtimeDirectory: string;
  readonly workDirectory: string;
  /** What the program finds in a HOME of its own; null where it has none. */
  readonly home: PrivateHome | null;
}

/**
 * What one process has on disk: an empty working directory of its own and a folder for temporary files (0700), which may
 * be one, the files of its launch (0600), and a HOME where its adapter wants one.
 */
export class ProcessHome {
  readonly workingDirectory: string;
  readonly temporaryDirectory: string;
  /** Where the system text is put. */
  readonly systemPath: string;
  /** The variables that name folders in its HOME. */
  readonly variables: Readonly<Record<string, string>>;
  readonly #home: PrivateHome | null;
  readonly #homePath: string;
  readonly #folders: ReadonlySet<string>;
  #files: CommandLine['files'] = [];

  constructor({ runtimeDirectory, workDirectory, home }: ProcessFolders, serial: number) {
    this.workingDirectory = join(workDirectory, String(serial));
    this.temporaryDirectory = join(runtimeDirectory, String(serial));
    this.systemPath = `${this.temporaryDirectory}.system`;
    this.#home = home;
    this.#homePath = `${this.temporaryDirectory}.home`;
    this.#folders = new Set([this.workingDirectory, this.temporaryDirectory]);
    const named = Object.entries(home?.variables ?? {}).map(([name, path]) => [name, join(this.#homePath, path)]);
    this.variables = Object.fromEntries(named);
  }

  async create(files: CommandLine['files']): Promise<void> {
    this.#files = files;
    for (const folder of this.#folders) await mkdir(folder, { mode: 0o700 });
    for (const { path, text } of files) await writeFile(path, text, { mode: 0o600, flag: 'wx' });
    if (this.#home !== null) await this.#furnish(this.#home);
  }

  /** Never rejects: what can't be removed now is removed with the folders of the service. */
  async remove(): Promise<void> {
    for (const folder of this.#folders) await rmdir(folder).catch(() => remove(folder));
    for (const { path } of this.#files) await remove(path);
    if (this.#home !== null) await remove(this.#homePath);
  }

  async #furnish({ files, links }: PrivateHome): Promise<void> {
    await mkdir(this.#homePath, { mode: 0o700 });
    for (const folder of Object.values(this.variables)) await makeFolder(folder);
    for (const { path, text } of files) {
      await writeFile(await this.#place(path), text, { mode: 0o600, flag: 'wx' });
    }
    for (const { path, to } of links) if (await isThere(to)) await symlink(to, await this.#place(path));
  }

  async #place(path: string): Promise<string> {
    const place = join(this.#homePath, path);
    await makeFolder(dirname(place));
    return place;
  }
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700, recursive: true });
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true }).catch(() => {});
}
