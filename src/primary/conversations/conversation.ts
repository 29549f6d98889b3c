import type { Node } from '../../shared/linked-list.js';
import type { Turn } from '../cli/adapter.js';

/** One conversation's text and times. Kept small: there may be a million. Changed by the store alone. */
export class Conversation {
  readonly id: string;
  /** Who created it; to any other client it does not exist. */
  readonly client: string;
  readonly system: string | null;
  readonly createdAt: number;
  /** Texts of the finished turns: the user's, the assistant's, the user's … */
  texts: string[] = [];
  bytes: number;
  tokens = 0;
  lastActivityAt: number;
  lastActiveMs: number;
  /** Its place in the order of activity; null before its first turn has ended, and once it is removed. */
  place: Node<Conversation> | null = null;
  /** The same among those of its client. */
  ownPlace: Node<Conversation> | null = null;
  /** The turns on it in order of arrival; the first one runs. null when there is none. */
  turns: { wake(): void }[] | null = null;

  constructor(id: string, client: string, system: string | null, now: number, monotonicMs: number) {
    this.id = id;
    this.client = client;
    this.system = system;
    this.bytes = Buffer.byteLength(system ?? '');
    this.createdAt = now;
    this.lastActivityAt = now;
    this.lastActiveMs = monotonicMs;
  }

  get isRemoved(): boolean {
    return this.place === null && this.texts.length > 0;
  }

  get history(): Turn['history'] {
    return this.texts.map((text, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', text }));
  }
}
