import type { ConversationMessages } from '../../shared/api/conversations.js';
import type { AttachedImage, UserMessage } from './asked.mjs';
import { ChatTurn } from './turn.mjs';

type Said = ConversationMessages['messages'][number];

/** A conversation as the page shows it: each message of the user with the answer after it. */
export function turnsOf({ messages }: ConversationMessages, nextId: () => number): ChatTurn[] {
  return messages.flatMap((said, index) => {
    if (said.role !== 'user') return [];
    const answer = messages[index + 1]?.content ?? '';
    return [new ChatTurn(nextId(), messageOf(said), { kind: 'done', result: null }, answer)];
  });
}

function messageOf({ content, images = [] }: Said): UserMessage {
  return { text: content, images: images.map(imageOf), system: '', model: null, effort: null, schema: null };
}

function imageOf({ media_type: mediaType, data }: NonNullable<Said['images']>[number]): AttachedImage {
  return { name: 'image', mediaType, data };
}
