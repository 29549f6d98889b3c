import { readFile, stat } from 'node:fs/promises';

/** Reads user names from /etc/passwd; users of a directory service have no name here. */
export class UserNames {
  readonly #path: string;
  #names: ReadonlyMap<number, string> = new Map();
  /** Inode, size and modification time of the file at the last read. */
  #known = '';

  constructor(path = '/etc/passwd') {
    this.#path = path;
  }

  /** Returns `uid-1234` for a user without a name. */
  async nameOf(uid: number): Promise<string> {
    await this.#refresh().catch(() => {}); // without a free descriptor, a user must not become another client
    return this.#names.get(uid) ?? `uid-${uid}`;
  }

  async #refresh(): Promise<void> {
    const { ino, size, mtimeMs } = await stat(this.#path);
    const state = [ino, size, mtimeMs].join(' ');
    if (state === this.#known) return;
    this.#names = namesIn(await readFile(this.#path, 'utf8'));
    this.#known = state;
  }
}

/** Returns the name in a line with a fault, so that no later uid gets it. */
function damagedName(line: string): string {
  return /^[^:\s]*/.exec(line)?.[0] ?? '';
}

/**
 * Maps each uid to its first name. Names that begin with `uid-`, and names that another uid has before, are skipped: they
 * could be mistaken for another user.
 */
function namesIn(passwd: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  const taken = new Set<string>();
  for (const line of passwd.split('\n')) {
    const [, name = damagedName(line), id] = /^([^:]+):[^:]*:(\d+):/.exec(line) ?? [];
    const uid = Number(id);
    const isFree = !taken.has(name) && !/^uid-/.test(name);
    if (id !== undefined && !names.has(uid) && isFree) names.set(uid, name);
    taken.add(name);
  }
  return names;
}
