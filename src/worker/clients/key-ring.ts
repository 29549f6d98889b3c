import { createHash, timingSafeEqual } from 'node:crypto';
import type { WorkerKey } from '../../shared/ipc/protocol.js';

interface HeldKey {
  readonly key: WorkerKey;
  readonly digest: Buffer;
}

/** Owns the API keys that this worker accepts. */
export class KeyRing {
  /** Null where requests need no key. */
  #held: readonly HeldKey[] | null = null;
  #wasTold = false;

  /** The keys as they were at the start; news that has come meanwhile is newer. */
  begin(keys: readonly WorkerKey[] | null): void {
    if (!this.#wasTold) this.replace(keys);
  }

  replace(keys: readonly WorkerKey[] | null): void {
    this.#wasTold = true;
    this.#held = keys?.map((key) => ({ key, digest: Buffer.from(key.digest, 'hex') })) ?? null;
  }

  /** Whether requests need a key. */
  get isNeeded(): boolean {
    return this.#held !== null;
  }

  /** Every key is compared, and digests have one length, so the time taken tells nothing of them. */
  find(presented: string): WorkerKey | null {
    const digest = createHash('sha256').update(presented).digest();
    const matches = (this.#held ?? []).filter((held) => timingSafeEqual(digest, held.digest));
    return matches[0]?.key ?? null;
  }
}
