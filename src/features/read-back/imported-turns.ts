import type { ConversationStore } from '../../primary/conversations/conversation-store.js';
import { TurnRecord, type TurnResources } from '../../primary/conversations/conversation-turn.js';
import type { TurnGate } from '../../primary/conversations/turn-gate.js';
import { stored } from '../../primary/store/contract/stored-text.js';
import { inLines } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import type { TitledConversation } from '../../shared/conversation.js';
import { bytesOfImages } from '../../shared/text/turns.js';
import type { TurnToImport } from './imported-turn.js';

interface ImportParts extends TurnResources {
  readonly conversations: Pick<ConversationStore, 'turn' | 'snapshot'>;
  readonly turnGate: Pick<TurnGate, 'admitting'>;
}

/**
 * Adds turns that a client has exported to a conversation, as if a model had just answered. A client has one at a time,
 * because many small requests could otherwise delay the turns of others.
 */
export class ImportedTurns {
  readonly #parts: ImportParts;
  readonly #inLine = inLines();

  constructor(parts: ImportParts) {
    this.#parts = parts;
  }

  /** Adds a turn; with `id` null, the first one of a new conversation. Rejects with the errors of a chat. */
  addTurn(turn: TurnToImport): Promise<TitledConversation> {
    return this.#inLine(holderOf(turn.client), () => this.#add(turn));
  }

  async #add({ id, client, system, text, images, answer, figures }: TurnToImport) {
    const { conversations, turnGate } = this.#parts;
    const added = (figures?.additions ?? []).map((each) => each.text);
    const bytes = Buffer.byteLength([text, answer, ...added].join('')) + bytesOfImages(images);
    using turn = await turnGate.admitting({ operation: 'chat', conversationId: id, client }, () => {
      const opened = conversations.turn(id, client, system, bytes);
      opened.openTurn();
      return opened;
    });
    const { signal } = new AbortController(); // a turn that is being stored is not undone
    await turn.ready(signal, () => {});
    const record = new TurnRecord(turn, { system, text, images, client }, this.#parts);
    for (const message of added) record.addMessage(message);
    await record.commit(answer, signal, figures === null ? null : stored(JSON.stringify(figures)));
    return conversations.snapshot(turn.id, client);
  }
}
