import { plural, timeText } from '../format.mjs';
import { hrefOf } from '../router.mjs';
import { EmptyState } from '../ui/empty-state.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import type { ConversationPages, ConversationsView, ListedConversation } from './conversation-pages.mjs';

interface ListProps {
  readonly pages: ConversationPages;
  readonly view: ConversationsView;
  /** The one that is open. */
  readonly openId: string | undefined;
}

/** The most recently active one first, as far as was asked for. */
export function ConversationList({ pages, view, openId }: ListProps) {
  const { conversations, next, state } = view;
  if (conversations?.length === 0 && state === 'ready') return html`<${NoConversations} />`;
  const retry = () => void (conversations === null ? pages.readFirst() : pages.readMore());
  return html`<nav class="talks" aria-label="Conversations">
    <ul>
      ${conversations?.map((listed) => html`<${Entry} key=${listed.conversation_id} listed=${listed} isOpen=${listed.conversation_id === openId} />`)}
    </ul>
    ${state === 'reading' && html`<p class="muted row"><span class="spinner" />Reading</p>`}
    ${typeof state === 'object' && html`<${ErrorNotice} error=${state.failure} onRetry=${retry} />`}
    ${next !== null && state === 'ready' && html`<button type="button" class="button" onClick=${() => void pages.readMore()}>Show more</button>`}
  </nav>`;
}

function Entry({ listed, isOpen }: { readonly listed: ListedConversation; readonly isOpen: boolean }) {
  const { conversation_id: id, title, message_count: messages, last_activity_at: at } = listed;
  return html`<li>
    <a href=${hrefOf('conversations', { id })} aria-current=${isOpen ? 'true' : undefined}>
      <span class="cut">${title || 'An image'}</span>
      <small class="muted figure">${timeText(at)} · ${plural(messages, 'message')}</small>
    </a>
  </li>`;
}

function NoConversations() {
  return html`<${EmptyState} title="No conversations">
    <p>What you <a href=${hrefOf('ask')}>ask</a> begins one. They end on their own when nobody goes on with them.</p>
  <//>`;
}
