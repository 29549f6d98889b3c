import type { FileBody, ReasonBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import { formatCount } from '../../shared/text/format.js';

/** File that decides who may do what, and that the service reads again while it runs. */
export interface ReloadedFile {
  /** Name in the metrics. */
  readonly name: string;
  readonly publicName: FileBody['name'];
  /** Part of the service that is degraded while the file has faults. */
  readonly part: ReasonBody['part'];
  /** What has the faults, and their effect. The log has the faults: not everybody may see the names in them. */
  readonly words: string;
}

/** Files of the core. */
const coreFiles: readonly ReloadedFile[] = [
  {
    ...{ name: 'keys', publicName: 'keys_file', part: 'keys' },
    words: 'in MODEL_API_KEYS_FILE, whose lines are refused: the log has it as keys_rejected',
  },
  {
    ...{ name: 'accounts', publicName: 'accounts_file', part: 'accounts' },
    words: 'in MODEL_API_ACCOUNTS_FILE, whose lines are refused: the log has it as accounts_rejected',
  },
];

const byName = (one: ReloadedFile, other: ReloadedFile) => (one.name < other.name ? -1 : 1);

/** Owns the present faults of the files that the service reads again, and which version of each file is in use. */
export class FileFaults {
  readonly #files = [...coreFiles];
  readonly #faults = new Map<string, readonly string[]>();
  readonly #modifiedAt = new Map<string, number>();

  /** Adds a file of a feature. Files of features are reported after those of the core, by name. */
  addFile(file: ReloadedFile): void {
    const added = [...this.#files.slice(coreFiles.length), file];
    this.#files.splice(coreFiles.length, added.length, ...added.toSorted(byName));
  }

  /**
   * Replaces the faults of a file. `modifiedAt`: last change of the text that is now in use; null if that is unknown or
   * has not changed. Returns whether the faults have changed.
   */
  replace(file: string, faults: readonly string[], modifiedAt: number | null = null): boolean {
    const before = this.#faults.get(file) ?? [];
    this.#faults.set(file, faults);
    if (modifiedAt !== null) this.#modifiedAt.set(file, modifiedAt);
    return before.length !== faults.length || before.some((fault, index) => fault !== faults[index]);
  }

  countOf(file: string): number {
    return this.#faults.get(file)?.length ?? 0;
  }

  /** Number of faults of each file. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#files.map(({ name }) => [name, this.countOf(name)]));
  }

  /** Files that have been read or have faults. */
  get files(): FileBody[] {
    return this.#files.flatMap(({ name, publicName }) => {
      const [modifiedAt, faults] = [this.#modifiedAt.get(name), this.countOf(name)];
      if (modifiedAt === undefined && faults === 0) return [];
      return [{ name: publicName, modified_at: modifiedAt === undefined ? null : timestamp(modifiedAt), faults }];
    });
  }

  /** Why the service is degraded; empty if no file has a fault. */
  get reasons(): ReasonBody[] {
    return this.#files.flatMap(({ name, publicName, part, words }) => {
      const count = this.countOf(name);
      return count === 0 ? [] : [{ part, name: publicName, message: `${formatCount(count, 'fault')} ${words}` }];
    });
  }
}

/** Number of faults in one record of the log. */
const maxShown = 20;

/** Returns faults as one text. */
export function shownFaults(faults: readonly string[]): string {
  const hidden = faults.length - maxShown;
  const more = hidden > 0 ? [`and ${formatCount(hidden, 'more fault')}`] : [];
  return [...faults.slice(0, maxShown), ...more].join('; ');
}
