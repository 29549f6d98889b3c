import type { ReadinessEntry } from '../../shared/readiness.js';
import type { AtLeastOne } from '../cli/model-router.js';
import type { Readiness } from './readiness.js';

/** Shows the readiness of all model CLIs, in the order of these. */
export class ReadinessBoard {
  readonly all: AtLeastOne<Readiness>;

  constructor(all: AtLeastOne<Readiness>) {
    this.all = all;
  }

  /** The last check of each. */
  get current(): AtLeastOne<ReadinessEntry> {
    const [first, ...others] = this.all;
    return [first.current, ...others.map(({ current }) => current)];
  }

  get isAnyReady(): boolean {
    return this.current.some(({ status }) => status === 'ready');
  }

  /** Whether none can be used, as far as is known. */
  get isNoneUsable(): boolean {
    return this.current.every(({ status }) => status === 'not_ready');
  }

  /** As that of `Readiness`, of all. */
  history(since: number | null): readonly ReadinessEntry[] {
    if (this.all.length === 1) return this.all[0].history(since);
    const entries = this.all.flatMap((readiness) => readiness.history(since));
    return entries.sort((a, b) => (a.checkedAt ?? 0) - (b.checkedAt ?? 0));
  }

  start(): void {
    for (const readiness of this.all) readiness.start();
  }

  stop(): void {
    for (const readiness of this.all) readiness.stop();
  }
}
