import type { FileBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import { formatCount } from '../../shared/text/format.js';

/** Files that decide who may do what, and that the service reads again while it runs. */
export const reloadedFiles = ['keys', 'made_keys', 'accounts'] as const;
export type ReloadedFile = (typeof reloadedFiles)[number];

/** Names of these files for clients. */
export const publicFileNames = {
  keys: 'keys_file',
  made_keys: 'made_keys',
  accounts: 'accounts_file',
} as const satisfies Readonly<Record<ReloadedFile, FileBody['name']>>;

/** Owns the present faults of the files that the service reads again, and which version of each file is in use. */
export class FileFaults {
  readonly #faults = new Map<ReloadedFile, readonly string[]>();
  readonly #modifiedAt = new Map<ReloadedFile, number>();

  /**
   * Replaces the faults of a file. `modifiedAt`: last change of the text that is now in use; null if that is unknown or
   * has not changed. Returns whether the faults have changed.
   */
  replace(file: ReloadedFile, faults: readonly string[], modifiedAt: number | null = null): boolean {
    const before = this.#faults.get(file) ?? [];
    this.#faults.set(file, faults);
    if (modifiedAt !== null) this.#modifiedAt.set(file, modifiedAt);
    return before.length !== faults.length || before.some((fault, index) => fault !== faults[index]);
  }

  /** Number of faults of each file. */
  get counts(): Readonly<Record<ReloadedFile, number>> {
    const countOf = (file: ReloadedFile) => this.#faults.get(file)?.length ?? 0;
    return { keys: countOf('keys'), made_keys: countOf('made_keys'), accounts: countOf('accounts') };
  }

  /** Files that have been read or have faults. */
  get files(): FileBody[] {
    return reloadedFiles.flatMap((file) => {
      const [modifiedAt, faults] = [this.#modifiedAt.get(file), this.counts[file]];
      if (modifiedAt === undefined && faults === 0) return [];
      return [
        { name: publicFileNames[file], modified_at: modifiedAt === undefined ? null : timestamp(modifiedAt), faults },
      ];
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
