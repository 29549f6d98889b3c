import { type SectionName, sectionNames } from '../../shared/api/status.js';
import type { WrittenSections } from '../../shared/ipc/protocol.js';
import { writtenEvent } from '../http/event-stream.js';
import type { Primary, Reply } from '../http/exchange.js';

/** `behind`: something has changed that it was not told, so that it needs a whole snapshot. */
type Standing = 'behind' | 'current';

/**
 * Owns those who view the status of one kind, and the status as it was told last. One subscription at the primary serves
 * them all, and all are sent the same bytes. Nothing is kept for a viewer that takes nothing: it gets a fresh snapshot
 * once it does.
 */
export class Audience {
  readonly #primary: Primary;
  readonly #withNames: boolean;
  readonly #onFailure: () => void;
  readonly #viewers = new Map<Reply, Standing>();
  readonly #sections = new Map<SectionName, string>();
  #snapshot: Buffer | null = null;
  #subscription: AbortController | null = null;

  /** `onFailure` is called when the primary tells no more. */
  constructor(primary: Primary, withNames: boolean, onFailure: () => void) {
    this.#primary = primary;
    this.#withNames = withNames;
    this.#onFailure = onFailure;
  }

  join(viewer: Reply): void {
    this.#viewers.set(viewer, 'behind');
    viewer.on('drain', () => this.#catchUp(viewer));
    this.#catchUp(viewer);
    if (this.#subscription === null) this.#subscribe();
  }

  leave(viewer: Reply): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#subscription?.abort();
    this.#subscription = null;
    this.#snapshot = null;
    this.#sections.clear();
  }

  #subscribe(): void {
    const subscription = new AbortController();
    this.#subscription = subscription;
    void this.#follow(subscription.signal).catch(() => {
      if (!subscription.signal.aborted) this.#onFailure(); // a defect is in the primary's log
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const request = { withNames: this.#withNames };
    for await (const changed of this.#primary.stream('statusFeed', request, signal)) {
      if (signal.aborted) return; // it was on its way: for nobody, or for those of the next subscription
      this.#tell(changed);
    }
  }

  #tell(changed: WrittenSections): void {
    this.#snapshot = null;
    for (const name of sectionNames) {
      const text = changed[name];
      if (text !== undefined) this.#sections.set(name, text);
    }
    const change = eventOf('change', new Map(Object.entries(changed)));
    for (const [viewer, standing] of this.#viewers) {
      if (standing === 'behind') this.#catchUp(viewer);
      else if (viewer.writableNeedDrain) this.#viewers.set(viewer, 'behind');
      else viewer.write(change);
    }
  }

  #catchUp(viewer: Reply): void {
    if (this.#viewers.get(viewer) !== 'behind' || this.#sections.size === 0 || viewer.writableNeedDrain) return;
    this.#viewers.set(viewer, 'current');
    this.#snapshot ??= eventOf('snapshot', this.#sections);
    viewer.write(this.#snapshot);
  }
}

/** An event whose members are written out already. */
function eventOf(event: string, sections: ReadonlyMap<string, string>): Buffer {
  const members = Array.from(sections, ([name, text]) => `${JSON.stringify(name)}:${text}`);
  return Buffer.from(writtenEvent(event, `{${members.join(',')}}`));
}
