import type { Image } from '../../shared/job.js';
import type { Node } from '../../shared/linked-list.js';
import type { Turn } from '../cli/adapter.js';
import { type StoredText, stored, textOf } from './stored-text.js';

/** A turn that runs or waits. */
export interface TurnInLine {
  /** What it adds to the conversation, the answer left out. */
  readonly bytes: number;
  wake(): void;
}

/** One conversation's text and times. Kept small: there may be a million. Changed by the store alone. */
export class Conversation {
  readonly id: string;
  /** Who created it; to any other client it does not exist. */
  readonly client: string;
  readonly #system: StoredText | null;
  readonly createdAt: number;
  /** Texts of the finished turns: the user's, the assistant's, the user's … */
  texts: StoredText[] = [];
  /** The images of its messages, by their place among the texts; null where it has none. */
  #images: Map<number, readonly Image[]> | null = null;
  bytes: number;
  tokens = 0;
  lastActivityAt: number;
  lastActiveMs: number;
  /** Its place in the order of activity; null before its first turn has ended, and once it is removed. */
  place: Node<Conversation> | null = null;
  /** The same among those of its client. */
  ownPlace: Node<Conversation> | null = null;
  /** The turns on it in order of arrival; the first one runs. null when there is none. */
  turns: TurnInLine[] | null = null;

  constructor(id: string, client: string, system: string | null, now: number, monotonicMs: number) {
    this.id = id;
    this.client = client;
    this.#system = system === null ? null : stored(system);
    this.bytes = this.#system?.length ?? 0;
    this.createdAt = now;
    this.lastActivityAt = now;
    this.lastActiveMs = monotonicMs;
  }

  get isRemoved(): boolean {
    return this.place === null && this.texts.length > 0;
  }

  get system(): string | null {
    return this.#system === null ? null : textOf(this.#system);
  }

  /** Its size when every turn in line has ended, their answers left out. */
  get bytesInView(): number {
    return (this.turns ?? []).reduce((sum, turn) => sum + turn.bytes, this.bytes);
  }

  keepImages(index: number, images: readonly Image[]): void {
    this.#images ??= new Map();
    this.#images.set(index, images);
  }

  /** A text is read when it is asked for: a live session needs none of them. */
  get history(): Turn['history'] {
    return this.texts.map((text, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      images: this.#images?.get(index),
      get text() {
        return textOf(text);
      },
    }));
  }
}
