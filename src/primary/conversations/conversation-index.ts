import { LinkedList } from '../fairness/linked-list.js';
import type { Conversation } from './conversation.js';
import { ConversationShares, type ShareLimits } from './conversation-shares.js';

/** Owns which conversations there are, what they hold together, and the order of their last activity. */
export class ConversationIndex {
  readonly #byId = new Map<string, Conversation>();
  readonly #byActivity = new LinkedList<Conversation>();
  readonly #shares: ConversationShares;
  #bytes = 0;
  #tokens = 0;

  constructor(share: ShareLimits) {
    this.#shares = new ConversationShares(share);
  }

  get counts() {
    return { conversations: this.#byId.size, bytes: this.#bytes, tokens: this.#tokens };
  }

  areWithin({ maxConversations, maxBytes }: ShareLimits): boolean {
    return this.#byId.size <= maxConversations && this.#bytes <= maxBytes;
  }

  get(id: string): Conversation | undefined {
    return this.#byId.get(id);
  }

  /** As the one that was active last. */
  add(conversation: Conversation): void {
    conversation.place = this.#byActivity.append(conversation);
    this.#byId.set(conversation.id, conversation);
    this.#shares.add(conversation);
    this.#bytes += conversation.bytes;
    this.#tokens += conversation.tokens;
  }

  /** It was active, and has so much more. Nothing for one that was removed. */
  grew(conversation: Conversation, bytes: number, tokens: number): void {
    if (conversation.place === null) return;
    this.#bytes += bytes;
    this.#tokens += tokens;
    this.#byActivity.moveToEnd(conversation.place);
    this.#shares.grew(conversation, bytes);
  }

  remove(conversation: Conversation): void {
    if (conversation.place !== null) this.#byActivity.remove(conversation.place);
    conversation.place = null;
    this.#shares.remove(conversation);
    this.#byId.delete(conversation.id);
    this.#bytes -= conversation.bytes;
    this.#tokens -= conversation.tokens;
  }

  /** As `ConversationShares.latest`. */
  latest(client: string, before: number | null, count: number): Conversation[] {
    return this.#shares.latest(client, before, count);
  }

  /** The first to be evicted, those of clients that hold more than their share before all others. */
  get firstToGo(): Conversation | null {
    return this.#shares.firstToGo() ?? this.idleOnes().next().value ?? null;
  }

  /** The least recently active first. Each may be removed when it has been yielded. */
  *idleOnes(): Generator<Conversation, undefined> {
    for (const conversation of this.#byActivity) if (conversation.turns === null) yield conversation;
  }
}
