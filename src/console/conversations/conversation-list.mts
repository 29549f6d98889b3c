import type { ConversationList as ConversationListPage } from '../../shared/api/conversations.js';
import { plural, timeText } from '../format.mjs';
import type { Listing } from '../list-pages.mjs';
import { hrefOf } from '../router.mjs';
import { EmptyState } from '../ui/empty-state.mjs';
import { html } from '../ui/html.mjs';
import { PagedList, type ShownList } from '../ui/paged-list.mjs';

type ListedConversation = ConversationListPage['conversations'][number];

/** One's own conversations, the most recently active one first. */
export const conversationListing: Listing<ConversationListPage, ListedConversation> = {
  path: '/chat',
  itemsOf: ({ conversations }) => conversations,
  idOf: ({ conversation_id: id }) => id,
  orderOf: null,
};

export function ConversationList(props: ShownList<ConversationListPage, ListedConversation>) {
  return html`<${PagedList} ...${props} page="conversations" label="Conversations" entry=${entryOf} none=${html`<${NoConversations} />`} />`;
}

function entryOf({ title, message_count: messages, last_activity_at: at }: ListedConversation) {
  return html`
    <span class="cut">${title || 'An image'}</span>
    <small class="muted figure">${timeText(at)} · ${plural(messages, 'message')}</small>
  `;
}

function NoConversations() {
  return html`<${EmptyState} title="No conversations">
    <p>What you <a href=${hrefOf('ask')}>ask</a> begins one. They end on their own when nobody goes on with them.</p>
  <//>`;
}
