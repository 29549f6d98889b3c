import { html } from 'htm/preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ConversationList as ConversationListPage } from '../../shared/api/conversations.js';
import { useParts } from '../base/context.mjs';
import { ApiError, sentenceOf } from '../base/failures.mjs';
import { plural, timeText } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { EmptyState } from '../ui/notices.mjs';
import { type Listing, ListPages, type ListView, PagedList, type ShownList } from '../ui/paged-list.mjs';
import { OpenConversation } from './open-conversation.mjs';

/** The conversations of the reader: to read, continue, fork, save and delete. */
export function ConversationsPage({ params }: PageProps) {
  const { api, link } = useParts();
  const pages = useMemo(() => new ListPages(api, conversationListing), [api]);
  const view = useValue(pages.view);
  const isUp = useValue(link.state) === 'up';
  const [notice, setNotice] = useState<{ readonly text: string; readonly id?: string }>({ text: '' });
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isUp) void pages.readFirst();
  }, [pages, isUp]);
  const leave = (id: string) => {
    pages.forget(id);
    setNotice({ text: 'The conversation is deleted.' });
    location.hash = hrefOf('conversations');
    heading.current?.focus();
  };
  const enter = (id: string) => {
    void pages.readFirst();
    setNotice({ text: 'Copied to a new conversation.', id });
    location.hash = hrefOf('conversations', { id });
  };
  const closed = refusalOf(view);
  return html`
    <div class="row between">
      <h1 ref=${heading} tabindex="-1">Conversations</h1>
      <span class="muted" role="status">${notice.id === params.id && notice.text}</span>
    </div>
    ${
      closed === null
        ? html`<div class="shelf" data-open=${params.id !== undefined}>
            <${ConversationList} pages=${pages} view=${view} openId=${params.id} />
            ${params.id !== undefined && html`<${OpenConversation} key=${params.id} id=${params.id} onDeleted=${leave} onForked=${enter} />`}
            ${params.id === undefined && view.items?.length !== 0 && html`<p class="muted hint">Choose a conversation to read it.</p>`}
          </div>`
        : html`<${NotShown} refusal=${closed} />`
    }
  `;
}

function NotShown({ refusal }: { readonly refusal: Error }) {
  return html`<${EmptyState} title="Conversations are not shown here">
    <p>${sentenceOf(refusal)}</p>
    <p>You can continue a conversation that is open on the page <a href=${hrefOf('ask')}>Ask</a>.</p>
  <//>`;
}

/** The operator has switched reading back off: that is a setting, not a failure. */
function refusalOf({ state }: Pick<ListView<unknown>, 'state'>): Error | null {
  if (typeof state !== 'object' || !(state.failure instanceof ApiError)) return null;
  return state.failure.status === 403 && state.failure.message.includes('MODEL_API_READ_BACK') ? state.failure : null;
}

type ListedConversation = ConversationListPage['conversations'][number];

/** The most recently active conversation first. */
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
    <p>What you <a href=${hrefOf('ask')}>ask</a> appears here. Conversations expire when nobody continues them.</p>
  <//>`;
}
