import type { Channel } from '../../src/shared/ipc/peer.js';

class End implements Channel {
  /** Every packet that was handed to this end, as it went out. */
  readonly packets: unknown[] = [];
  readonly #pair: { isOpen: boolean };
  readonly #onMessage: ((message: unknown) => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  other: End = this;

  constructor(pair: { isOpen: boolean }) {
    this.#pair = pair;
  }

  /** The messages of all packets, in order. */
  get sent(): unknown[] {
    return this.packets.flat();
  }

  send(packet: object, done: (error: Error | null) => void): void {
    const copy: unknown = JSON.parse(JSON.stringify(packet));
    if (this.#pair.isOpen) this.packets.push(copy);
    setImmediate(() => {
      if (!this.#pair.isOpen) return done(new Error('channel closed'));
      for (const listener of this.other.#onMessage) listener(JSON.parse(JSON.stringify(copy)));
      done(null);
    });
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#onMessage.push(listener);
  }

  onClose(listener: () => void): void {
    this.#onClose.push(listener);
  }

  closed(): void {
    for (const listener of this.#onClose) listener();
  }
}

/** Both ends of a channel in memory. It delivers in order, in a later turn of the loop, as a copy through JSON. */
export class ChannelPair {
  readonly #state = { isOpen: true };
  readonly left = new End(this.#state);
  readonly right = new End(this.#state);

  constructor() {
    this.left.other = this.right;
    this.right.other = this.left;
  }

  /** Loses what is on its way, as when a process is killed. Both ends are told in a later turn of the loop. */
  close(): void {
    if (!this.#state.isOpen) return;
    this.#state.isOpen = false;
    setImmediate(() => {
      this.left.closed();
      this.right.closed();
    });
  }
}
