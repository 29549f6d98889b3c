import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ConversationList as ConversationListPage } from '../../shared/api/conversations.js';
import { useParts } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { dayGroupText } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf } from '../base/router.mjs';
import { Dialog, Icon } from '../ui/controls.mjs';
import { type Listing, ListPages, type ListView, PagedList } from '../ui/paged-list.mjs';
import {
  type ActKind,
  DeleteDialog,
  Entry,
  EntryActions,
  type ListedConversation,
  RenameForm,
  SaveDialog,
} from './entry.mjs';
import { ImportButton } from './import.mjs';
import { firstVersions, rootOf } from './versions.mjs';

/** List of the conversations, the most recently active first. */
export const conversationListing: Listing<ConversationListPage, ListedConversation> = {
  path: '/chat',
  itemsOf: ({ conversations }) => conversations,
  idOf: ({ conversation_id: id }) => id,
  orderOf: ({ last_activity_at: at }) => at,
  asksForKey: false,
};

type ConversationPages = ListPages<ConversationListPage, ListedConversation>;

/**
 * Returns the user's conversations. Reads them again when the service answers again, for another key, and when
 * `version` changes.
 */
export function useConversations(version: unknown): ConversationPages {
  const { api, link, keys } = useParts();
  const pages = useMemo(() => new ListPages(api, conversationListing), [api]);
  const isUp = useValue(link.state) === 'up';
  const hasKey = useValue(keys.hasKey);
  useEffect(() => {
    if (isUp) void pages.readFirst();
  }, [pages, isUp, hasKey, version]);
  return pages;
}

interface ConversationsProps {
  readonly pages: ConversationPages;
  readonly openId: string | null;
  /** Stored versions of the open conversation. */
  readonly versions: readonly ListedConversation[];
  /** Conversations of this page, which the service may not list yet. */
  readonly talks: readonly TalkEntry[];
  /** Starts a new conversation. */
  readonly onNew: () => void;
  readonly onDeleted: (id: string) => void;
}

/** Entry of a conversation that is being answered, or that began on this page. */
export interface TalkEntry {
  /** ID of the conversation; null until its first answer. */
  readonly id: string | null;
  readonly href: string;
  readonly title: string;
  readonly isOpen: boolean;
  /** State such as `Answering`; empty once the conversation is answered. */
  readonly status: string;
}

const wide = '(min-width: 1000px)';

function useIsWide(): boolean {
  const [isWide, setWide] = useState(() => matchMedia(wide).matches);
  useEffect(() => {
    const query = matchMedia(wide);
    const follow = () => setWide(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, []);
  return isWide;
}

/** Conversation that the user is renaming, saving or deleting; null if no form or dialog is open. */
type Act = { readonly kind: ActKind; readonly item: ListedConversation } | null;

/** Title that the user typed but did not save. */
interface TypedTitle {
  readonly id: string;
  readonly title: string;
}

/** Returns the ID of the conversation on the page if it is a version of the listed one, else of the listed one. */
function openVersionOf({ conversation_id: id }: ListedConversation, { openId, versions }: ConversationsProps): string {
  return openId !== null && versions.some((version) => version.conversation_id === id) ? openId : id;
}

/** Shows the list in a column beside the chat; on a narrow page, a button opens it. */
export function Conversations(props: ConversationsProps) {
  const { pages, onNew, onDeleted } = props;
  const [act, setAct] = useState<Act>(null);
  const finish = (ids: readonly string[]) => {
    setAct(null);
    for (const id of ids) {
      pages.forget(id);
      onDeleted(id);
    }
  };
  return html`
    ${
      useIsWide()
        ? html`<div class="history"><${HistoryList} ...${props} act=${act} onAct=${setAct} onLeave=${() => {}} /></div>`
        : html`<${Drawer} onNew=${onNew} list=${(begin: () => void, close: () => void) => html`<${HistoryList} ...${props} onNew=${begin} act=${act} onAct=${setAct} onLeave=${close} />`} />`
    }
    ${act?.kind === 'save' && html`<${SaveDialog} id=${openVersionOf(act.item, props)} onClose=${() => setAct(null)} />`}
    ${act?.kind === 'delete' && html`<${DeleteDialog} item=${act.item} onDeleted=${finish} onClose=${() => setAct(null)} />`}
  `;
}

interface DrawerProps {
  /** Draws the list. `begin` starts a new conversation, `close` closes the drawer. */
  readonly list: (begin: () => void, close: () => void) => ComponentChildren;
  readonly onNew: () => void;
}

function Drawer({ list, onNew }: DrawerProps) {
  const [isOpen, setOpen] = useState(false);
  const begin = () => {
    setOpen(false);
    onNew();
  };
  const follow = ({ target }: Event) => {
    if ((target as Element).closest('a') !== null) setOpen(false);
  };
  return html`
    <div class="row between">
      <button type="button" class="button small" aria-haspopup="dialog" onClick=${() => setOpen(true)}>Conversations</button>
      <button type="button" class="button small" onClick=${begin}>New conversation</button>
    </div>
    ${isOpen && html`<${Dialog} title="Conversations" onClose=${() => setOpen(false)}><div class="history" onClick=${follow}>${list(begin, () => setOpen(false))}</div><//>`}
  `;
}

const searchDelayMs = 250;
/** Words for a turn that another page or program has begun. */
const openStatuses = { queued: 'In the queue', running: 'Answering' } as const;

interface HistoryListProps extends ConversationsProps {
  readonly act: Act;
  readonly onAct: (act: Act) => void;
  /** Called when the page shows another conversation, without a click on a link. */
  readonly onLeave: () => void;
}

function HistoryList({ pages, openId, versions, onNew, talks, act, onAct, onLeave }: HistoryListProps) {
  const { clock } = useParts();
  const view = useValue(pages.view);
  const [typed, setTyped] = useState<TypedTitle | null>(null);
  const endRename = ({ conversation_id: id }: ListedConversation, title?: string) => {
    setTyped(title === undefined ? null : { id, title });
    onAct(null);
  };
  const closed = refusalOf(view);
  if (closed !== null) return html`<p class="muted"><small>${closed}</small></p>`;
  const entry = (item: ListedConversation, link: (content: ComponentChildren) => ComponentChildren) =>
    act?.kind === 'rename' && act.item.conversation_id === item.conversation_id
      ? html`<${RenameForm} item=${item} typed=${typed?.id === item.conversation_id ? typed.title : null} onRenamed=${(renamed: ListedConversation) => pages.replace(renamed)} onEnd=${(title?: string) => endRename(item, title)} />`
      : html`${link(html`<${Entry} item=${item} status=${statusOf(item)} search=${pages.search} />`)}<${EntryActions} item=${item} onAct=${(kind: ActKind) => onAct({ kind, item })} />`;
  const roots = new Map(view.items?.map((item) => [item.conversation_id, rootOf(item)]));
  const statusOf = (item: ListedConversation) =>
    talks.find(({ id, status }) => status !== '' && id !== null && roots.get(id) === rootOf(item))?.status ??
    (item.open_turn === null ? undefined : openStatuses[item.open_turn.status]);
  const listed = view.items && firstVersions(view.items);
  const isOpen = ({ conversation_id: id }: ListedConversation) =>
    id === openId || (openId !== null && versions.some((version) => version.conversation_id === id));
  const unlisted = talks.filter(
    ({ id }) => pages.search === '' && !view.items?.some((item) => item.conversation_id === id),
  );
  const none =
    pages.search === ''
      ? 'Your conversations appear here.'
      : 'Nothing found in the titles and messages of your conversations.';
  return html`
    <div class="row begin">
      <button type="button" class="button" onClick=${onNew}><${Icon} name="plus" />New conversation</button>
      <${ImportButton} onImported=${onLeave} />
    </div>
    <${SearchField} pages=${pages} />
    <${PagedList}
      pages=${pages}
      view=${{ ...view, items: listed }}
      openId=${listed?.find(isOpen)?.conversation_id}
      href=${(id: string, { match }: ListedConversation) => hrefOf('ask', { conversation: id, ...(match !== undefined && match.message !== null && { message: `${match.message}` }) })}
      label="Conversations"
      entry=${entry}
      groupOf=${({ last_activity_at: at }: ListedConversation) => dayGroupText(at, clock.now())}
      first=${unlisted.length > 0 ? html`<${Unlisted} talks=${unlisted} />` : null}
      none=${html`<p class="muted"><small>${none}</small></p>`}
    />
  `;
}

/** Shows conversations above the list until the service lists them. */
function Unlisted({ talks }: Pick<ConversationsProps, 'talks'>) {
  return html`<ul>${talks.map(({ href, title, isOpen, status }) => html`<li key=${href}><a href=${href} aria-current=${isOpen ? 'true' : undefined}><span class="cut">${title}</span><small class="muted">${status}</small></a></li>`)}</ul>`;
}

function SearchField({ pages }: Pick<ConversationsProps, 'pages'>) {
  const { clock } = useParts();
  const [words, setWords] = useState(pages.search);
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    return clock.after(searchDelayMs, () => void pages.find(words.trim()));
  }, [words]);
  const type = ({ currentTarget }: { currentTarget: HTMLInputElement }) => setWords(currentTarget.value);
  return html`<input type="search" aria-label="Search conversations" placeholder="Search conversations" maxlength="200" value=${words} onInput=${type} />`;
}

/**
 * Returns why no conversation is listed, although nothing failed: the user has entered no key yet, or the operator has
 * switched reading back off.
 */
function refusalOf({ state }: Pick<ListView<unknown>, 'state'>): string | null {
  const error = typeof state === 'object' && state.failure instanceof ApiError ? state.failure : null;
  if (error?.status === 401) return 'Sign in with your API key to see your conversations.';
  return error?.body?.error === 'forbidden' ? 'This service does not list conversations.' : null;
}
