import { formatCount } from '../../shared/text/format.js';

/** Files that decide who may do what, and that the service reads again while it runs. */
export const reloadedFiles = ['keys', 'made_keys', 'accounts'] as const;
export type ReloadedFile = (typeof reloadedFiles)[number];

/** Owns the present faults of the files that the service reads again. */
export class FileFaults {
  readonly #faults = new Map<ReloadedFile, readonly string[]>();

  /** Replaces the faults of a file. Returns whether they have changed. */
  replace(file: ReloadedFile, faults: readonly string[]): boolean {
    const before = this.#faults.get(file) ?? [];
    this.#faults.set(file, faults);
    return before.length !== faults.length || before.some((fault, index) => fault !== faults[index]);
  }

  /** Number of faults of each file. */
  get counts(): Readonly<Record<ReloadedFile, number>> {
    const countOf = (file: ReloadedFile) => this.#faults.get(file)?.length ?? 0;
    return { keys: countOf('keys'), made_keys: countOf('made_keys'), accounts: countOf('accounts') };
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
