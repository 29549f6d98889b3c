import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, unlink } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import type { Environment } from '../../shared/config/config.js';
import type { Login } from './environment.js';
import { CommandError, exitCodes } from './errors.js';
import { writeUserFile } from './user-file.js';

const maxBytes = 65_536;
const othersMayReadOrWrite = 0o077;
const othersMayWrite = 0o022;

/** Owns the file with the stored login. The file contains an API key: only its owner may read it. */
export class LoginFile {
  /** Path of the file; null if the environment names no home directory. */
  readonly #path: string | null;

  constructor({ XDG_CONFIG_HOME: config, HOME: home }: Environment) {
    // The specification of XDG_CONFIG_HOME says to ignore a relative path.
    const folder = config && isAbsolute(config) ? config : home ? join(home, '.config') : null;
    this.#path = folder && join(folder, 'prompt-relay', 'login.json');
  }

  /**
   * Reads the login; null if no login is stored. Throws a CommandError, also if other users may have read or written
   * the file.
   */
  async readLogin(): Promise<Login | null> {
    if (this.#path === null) return null;
    // Without O_NONBLOCK, a named pipe at this path would block the command.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(this.#path, flags).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
      throw this.#refused(error.code === 'ELOOP' ? 'it is a symbolic link' : error.message);
    });
    if (file === null) return null;
    try {
      return await this.#readFrom(file);
    } finally {
      await file.close();
    }
  }

  /** Replaces the file atomically. Resolves with its path. Throws a CommandError. */
  async writeLogin(login: Login): Promise<string> {
    const path = this.#path;
    if (path === null) throw new CommandError(exitCodes.config, 'login: set HOME or XDG_CONFIG_HOME');
    try {
      await this.#makeFolder(dirname(path));
      await writeUserFile(path, `${JSON.stringify(login)}\n`);
      return path;
    } catch (error) {
      throw error instanceof CommandError ? error : this.#unwritable(error as Error);
    }
  }

  /** Deletes the file. Resolves with false if no file existed. Throws a CommandError. */
  async removeLogin(): Promise<boolean> {
    if (this.#path === null) return false;
    return unlink(this.#path).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false;
        throw this.#unwritable(error);
      },
    );
  }

  async #readFrom(file: FileHandle): Promise<Login> {
    const stats = await file.stat();
    const { uid, mode, size } = stats;
    if (!stats.isFile()) throw this.#refused('it is not a regular file');
    if (uid !== process.geteuid?.()) throw this.#refused('it belongs to another user');
    if ((mode & othersMayReadOrWrite) !== 0) throw this.#refused('other users may read or write it');
    if (size > maxBytes) throw this.#refused('it is too large');
    const { url, key } = Object(parseJson(await file.readFile('utf8')));
    if (typeof url === 'string' && (typeof key === 'string' || key === null)) return { url, key };
    throw this.#refused('it contains no login');
  }

  async #makeFolder(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const stats = await lstat(folder);
    if (!stats.isDirectory()) throw this.#refused(`${folder} is a symbolic link`);
    if (stats.uid !== process.geteuid?.()) throw this.#refused(`${folder} belongs to another user`);
    if ((stats.mode & othersMayWrite) !== 0) throw this.#refused(`other users may write to ${folder}`);
    await chmod(folder, 0o700);
  }

  #refused(reason: string): CommandError {
    const wayOut = 'remove it with "prompt-relay logout" and log in again';
    return new CommandError(exitCodes.config, `the login in ${this.#path} is not used, because ${reason}: ${wayOut}`);
  }

  #unwritable({ message }: Error): CommandError {
    return new CommandError(exitCodes.output, `cannot change the login in ${this.#path}: ${message}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
