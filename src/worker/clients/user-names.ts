import { readFile, stat } from 'node:fs/promises';

/** Knows the names of this machine's users, as /etc/passwd has them. Users of a directory service have none here. */
export class UserNames {
  readonly #path: string;
  #names: ReadonlyMap<number, string> = new Map();
  /** What the file looked like when it was read last. */
  #known = '';

  constructor(path = '/etc/passwd') {
    this.#path = path;
  }

  /** `uid-1234` for a user without a name. */
  async nameOf(uid: number): Promise<string> {
    await this.#refresh().catch(() => {});
    return this.#names.get(uid) ?? `uid-${uid}`;
  }

  async #refresh(): Promise<void> {
    const { ino, size, mtimeMs } = await stat(this.#path);
    const looks = [ino, size, mtimeMs].join(' ');
    if (looks === this.#known) return;
    this.#names = namesIn(await readFile(this.#path, 'utf8'));
    this.#known = looks;
  }
}

/** Of two names for one user the first counts. A name that says `uid-…` could be mistaken for another user's. */
function namesIn(passwd: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const line of passwd.split('\n')) {
    const [, name = '', id] = /^([^:]+):[^:]*:(\d+):/.exec(line) ?? [];
    const uid = Number(id);
    if (id !== undefined && !names.has(uid) && !/^uid-/.test(name)) names.set(uid, name);
  }
  return names;
}
