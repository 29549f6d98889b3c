import type { Channel } from '../../../src/shared/ipc/peer.js';

class End implements Channel {
  /** Packets that this end has sent. */
  readonly packets: unknown[] = [];
  readonly #pair: { isOpen: boolean };
  readonly #onMessage: ((message: unknown) => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  other: End = this;

  constructor(pair: { isOpen: boolean }) {
    this.#pair = pair;
  }

  /** Messages of all packets, in order. */
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

/** Channel in memory. Packets arrive in order, in a later turn of the event loop, as copies through JSON. */
export class ChannelPair {
  readonly #state = { isOpen: true };
  readonly left = new End(this.#state);
  readonly right = new End(this.#state);

  constructor() {
    this.left.other = this.right;
    this.right.other = this.left;
  }

  /** Drops undelivered packets, like a killed process. Both ends see the close in a later turn of the event loop. */
  close(): void {
    if (!this.#state.isOpen) return;
    this.#state.isOpen = false;
    setImmediate(() => {
      this.left.closed();
      this.right.closed();
    });
  }
}
