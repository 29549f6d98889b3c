import { html } from 'htm/preact';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ModelEntry, ModelList } from '../../shared/api/models.js';
import { useLeaving, useLoad, useParts } from '../base/context.mjs';
import { mayHaveFocus } from '../base/focus.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { type ListedConversation, titleOf, withoutMarks } from '../conversations/entry.mjs';
import { Conversations, type TalkEntry, useConversations } from '../conversations/list.mjs';
import { Icon } from '../ui/controls.mjs';
import { Chat, type ChatView, isAnswering, isEmptyView } from './chat.mjs';
import { Composer } from './composer.mjs';
import { type Draft, readDraft, takesEffort, takesImages, useBackground, useDraft } from './draft.mjs';
import { SnippetDialog } from './snippets.mjs';
import { useSteering } from './steering.mjs';
import { chatBodyOf, type UserMessage } from './turn.mjs';
import { Announcement, TurnList } from './turns.mjs';
import { useVersions } from './versions.mjs';

const betweenLooksMs = 3000;

/** Shows the page Ask: the list of conversations and the chat. */
export function AskPage({ params }: PageProps) {
  const chat = useChat();
  const view = useValue(chat.view);
  const isBusy = useValue(chat.isBusy);
  const page = useRef<HTMLElement>(null);
  const { change, ...composing } = useComposing(view);
  const [isSnippetOpen, setSnippetOpen] = useState(false);
  const [areOptionsOpen, setOptionsOpen] = useState(false);
  const begin = () => {
    chat.reset();
    change({ system: '', schemaText: '', effort: null }); // these options were for the previous conversation
  };
  useConversation(chat, params, begin);
  useAddress(chat, view, params);
  useModelOf(view, composing.models, (model) => change({ model }));
  useEscape(page, () => (areOptionsOpen ? setOptionsOpen(false) : chat.stop()));
  const isAtEnd = useFollowing(page, view.turns.at(-1)?.id, view.isInPlace);
  useLeaving(() => chat.remember());
  const clear = () => change({ text: '', images: [] });
  const send = (message: UserMessage) => {
    clear();
    void chat.ask(message);
  };
  const background = useBackground(view.conversationId, clear);
  const last = view.turns.at(-1);
  const { pages, versions, items } = useStored(chat, view);
  useElsewhere(page, chat, pages);
  useTabTitle(page, titleIn([...(items ?? []), ...versions], view), params);
  return html`<div class="desk">
    <${History} chat=${chat} pages=${pages} versions=${versions} begin=${begin} />
    <section class="ask" ref=${page}>
    <h1 class="unseen">Ask</h1>
    <${TurnList} chat=${chat} view=${view} versions=${versions} lifetimeMs=${lifetimeOf(items)} model=${composing.draft.model} effort=${takesEffort(composing.model) ? composing.draft.effort : null} takesImages=${takesImages(composing.model)} entry=${composing.model} />
    ${last && html`<${Announcement} turn=${last} />`}
    ${!isAtEnd && html`<button type="button" class="button icon to-end" aria-label="Jump to the end" title="Jump to the end" onClick=${toEnd}><${Icon} name="down" /></button>`}
    <${Composer}
      ...${composing}
      areOptionsOpen=${areOptionsOpen} onOptions=${setOptionsOpen}
      onChange=${change}
      isBusy=${isBusy}
      onSend=${send}
      background=${background} steering=${useSteering(chat, isBusy, (sent) => change(({ text }) => (text === sent ? { text: '' } : {})))}
      onStop=${() => chat.stop()}
      onSnippet=${() => setSnippetOpen(true)}
      hasBegun=${view.conversationId !== null} system=${view.system}
    />
    ${isSnippetOpen && html`<${Snippet} view=${view} draft=${composing.draft} onClose=${() => setSnippetOpen(false)} />`}
    </section>
  </div>`;
}

function useChat(): Chat {
  const { api, clock, memory } = useParts();
  return useMemo(() => new Chat(api, clock, memory), [api, clock, memory]);
}

/** Returns the conversations that the service lists, and the versions of the one on the page. */
function useStored(chat: Chat, view: ChatView) {
  const changes = useAnswering(chat);
  const pages = useConversations(changes);
  const versions = useVersions(view, changes);
  return { pages, versions, items: useValue(pages.view).items };
}

/** Looks regularly for what other pages and programs of the same client have asked, while the page is seen. */
function useElsewhere(
  page: RefObject<HTMLElement | null>,
  chat: Chat,
  pages: ReturnType<typeof useConversations>,
): void {
  const { clock, link } = useParts();
  const isUp = useValue(link.state) === 'up';
  useEffect(() => {
    if (!isUp) return;
    return clock.every(betweenLooksMs, () => {
      if (document.visibilityState === 'hidden' || page.current?.closest('[hidden]') !== null) return;
      void chat.lookElsewhere();
      if (pages.view.value.state === 'ready' && pages.search === '') void pages.readFirst();
    });
  }, [chat, pages, clock, isUp]);
}

/** Returns a text that changes whenever the list of conversations may be out of date. */
function useAnswering(chat: Chat): string {
  return `${useValue(chat.view).conversationId} ${useValue(chat.talks).filter(isAnswering).length}`;
}

interface HistoryProps {
  readonly chat: Chat;
  readonly pages: ReturnType<typeof useConversations>;
  /** Stored versions of the conversation on the page. */
  readonly versions: readonly ListedConversation[];
  /** Empties the page for a new conversation. */
  readonly begin: () => void;
}

/** Shows the conversations beside the chat, including conversations that exist only on this page. */
function History({ chat, pages, versions, begin }: HistoryProps) {
  const view = useValue(chat.view);
  const { conversationId: id } = view;
  const focusMessage = useMessageFocus();
  const clear = () => {
    begin();
    location.hash = hrefOf('ask');
  };
  const onNew = () => {
    clear();
    focusMessage();
  };
  const leave = (deleted: string) => {
    if (deleted === id) clear();
    chat.forget(deleted);
  };
  const entries = useValue(chat.talks).map((talk) => entryOf(talk, talk === view));
  return html`<${Conversations} pages=${pages} versions=${versions} openId=${id} talks=${entries} onNew=${onNew} onDeleted=${leave} />`;
}

/** Returns a function that focuses the message after the next drawing, which may remove a dialog. */
function useMessageFocus(): () => void {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const field = document.querySelector<HTMLElement>('[data-field=text]');
    if (count > 0 && field !== null && mayHaveFocus(field)) field.focus();
  }, [count]);
  return () => setCount((before) => before + 1);
}

/** Returns the message that is being written, and the model that it is sent to. */
function useComposing({ state }: ChatView) {
  const { memory } = useParts();
  const [draft, change] = useDraft(memory);
  const models = useModels();
  const model = chosenModel(models, draft.model);
  return { draft, change, models, model, read: readDraft(draft, { model, isReading: state === 'reading' }) };
}

/** Shows the conversation that the address names: a stored one, one of this page, or a new one. */
function useConversation(chat: Chat, params: PageProps['params'], begin: () => void): void {
  const id = params.conversation ?? params.id; // `id` is the name in old addresses of the page Conversations
  useEffect(() => {
    if (id !== undefined) void chat.read(id, params.message === undefined ? null : Number(params.message));
    else if (params.new !== undefined) void chat.recall(params.new);
    else if (!isEmptyView(chat.view.value)) begin();
  }, [params]);
}

/** Builds the list entry of a conversation of this page. */
function entryOf({ turns, conversationId: id, local }: ChatView, isOpen: boolean): TalkEntry {
  const state = turns.at(-1)?.state.value.kind ?? 'done';
  return {
    id,
    href: addressOf(id, local),
    title: firstWords(turns),
    isOpen,
    status: statuses[state] ?? 'Answering',
  };
}

const statuses: Readonly<Record<string, string>> = {
  queued: 'In the queue',
  retrying: 'Waiting for a place in the queue',
  done: '',
  stopped: 'Stopped',
  unfinished: 'Not finished',
  failed: 'Failed',
};

function firstWords(turns: ChatView['turns']): string {
  const { text = '' } = turns[0]?.question ?? {};
  return withoutMarks(text.slice(0, 200)).replace(/\s+/g, ' ').trim().slice(0, 80) || 'An image';
}

/** Returns the title in the list; if the conversation is not listed, its first words, or null if it has no turns. */
function titleIn(items: readonly ListedConversation[], { conversationId, turns }: ChatView): string | null {
  const item = items.find(({ conversation_id: id }) => id === conversationId);
  if (item !== undefined) return titleOf(item);
  return turns.length === 0 ? null : firstWords(turns);
}

/**
 * Returns the milliseconds for which the service stores a conversation after its last message; null if none is listed.
 */
function lifetimeOf(items: readonly ListedConversation[] | null): number | null {
  const [item] = items ?? [];
  return item === undefined ? null : Date.parse(item.expires_at) - Date.parse(item.last_activity_at);
}

/** Sets the title of the tab to that of the conversation while the page is shown. */
function useTabTitle(page: RefObject<HTMLElement | null>, title: string | null, params: PageProps['params']): void {
  useEffect(() => {
    if (page.current?.closest('[hidden]') === null) document.title = `${title ?? 'Ask'} · prompt-relay`;
  }, [title, params]);
}

/** Returns the models of the service; empty until the list is loaded. */
function useModels(): readonly ModelEntry[] {
  const [list] = useLoad<ModelList>('/models');
  return list.state === 'ready' ? list.value.models : [];
}

function chosenModel(models: readonly ModelEntry[], id: string | null): ModelEntry | undefined {
  return models.find((model) => (id === null ? model.default : model.id === id));
}

/** Selects the model of the last answer when a conversation is opened, if that model is listed. */
function useModelOf(
  { conversationId, local, turns, state }: ChatView,
  models: readonly ModelEntry[],
  choose: (model: string | null) => void,
): void {
  const name = local ?? conversationId;
  const isThere = state === 'ready' && turns.length > 0 && models.length > 0;
  useEffect(() => {
    const turn = turns.at(-1);
    if (!isThere || name === null || turn === undefined) return;
    const { value } = turn.state;
    const model = value.kind === 'done' ? value.result.model : turn.question.model;
    const entry = models.find(({ id }) => id === model) ?? models.find(({ id }) => id.endsWith(`/${model}`));
    if (entry !== undefined) choose(entry.default ? null : entry.id);
  }, [name, isThere]);
}

function addressOf(conversationId: string | null, local: string | null): string {
  if (conversationId !== null) return hrefOf('ask', { conversation: conversationId });
  return hrefOf('ask', local === null ? {} : { new: local });
}

/** Writes the conversation into the address, so that a reload or a bookmark leads to it. */
function useAddress(chat: Chat, view: ChatView, params: PageProps['params']): void {
  useEffect(() => {
    const { conversationId, local } = chat.view.value; // a change of the address may just have replaced the view
    if (conversationId === null && local === null) return;
    const isShown = /^(#\/(ask|conversations)\b.*|#?\/?)$/.test(location.hash);
    if (isShown) history.replaceState(null, '', addressOf(conversationId, local));
  }, [view.conversationId, view.local, params]);
}

/** Handles Escape anywhere on this page. An open dialog and a form handle the key themselves. */
function useEscape(page: RefObject<HTMLElement | null>, onEscape: () => void): void {
  const latest = useRef(onEscape);
  latest.current = onEscape;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isShown = page.current?.closest('[hidden]') === null;
      const isFree = !event.defaultPrevented && document.querySelector('dialog[open], :popover-open') === null;
      if (event.key === 'Escape' && isShown && isFree) latest.current();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

interface SnippetProps {
  readonly view: ChatView;
  readonly draft: Draft;
  readonly onClose: () => void;
}

function messageOf(draft: Draft): UserMessage | null {
  const read = readDraft(draft, { model: undefined, isReading: false });
  return read.kind === 'message' ? read.message : null;
}

function exampleOf({ schemaText: _, ...draft }: Draft): Omit<UserMessage, 'schema'> {
  return { ...draft, text: 'Hello, my name is Ada' };
}

/** Shows code that sends the draft; if it cannot be sent, code for the last message or an example. */
function Snippet({ view, draft, onClose }: SnippetProps) {
  const { keys } = useParts();
  const sent = view.turns.at(-1);
  const message = messageOf(draft) ?? sent?.question ?? { ...exampleOf(draft), schema: null };
  const id = message === sent?.question && view.turns.length === 1 ? null : view.conversationId;
  const request = {
    url: new URL('../chat', location.href).href,
    body: chatBodyOf(message, id),
    needsKey: keys.key !== null,
  };
  return html`<${SnippetDialog} request=${request} onClose=${onClose} />`;
}

const nearPx = 60;

/**
 * Scrolls with the growing answer while the user is at the end of the page, and to the end at each new turn, but not if
 * a version was opened in place of another one. Returns whether the user is at the end.
 */
function useFollowing(element: RefObject<HTMLElement | null>, newest: number | undefined, isInPlace: boolean): boolean {
  const [isShownAtEnd, setAtEnd] = useState(true);
  const stays = useRef(isInPlace);
  stays.current = isInPlace;
  const hasTurns = useRef(false); // a new conversation begins at the top of the page
  hasTurns.current = newest !== undefined;
  useLayoutEffect(() => {
    if (newest !== undefined && !isInPlace) toEnd();
  }, [newest, isInPlace]);
  useEffect(() => {
    if (element.current === null) return;
    let isAtEnd = true;
    let height = 0; // of the document, at its last change of size
    const isHidden = () => element.current?.offsetParent === null; // the scroll position belongs to another page
    const follow = () => {
      if (isHidden()) return;
      // The document may have grown since the page was scrolled to its end.
      isAtEnd = innerHeight + scrollY >= height - nearPx;
      setAtEnd(isAtEnd);
    };
    const growth = new ResizeObserver(() => {
      if (isAtEnd && hasTurns.current && !stays.current && !isHidden()) toEnd();
      height = document.documentElement.scrollHeight;
      follow();
    });
    growth.observe(element.current);
    addEventListener('scroll', follow, { passive: true });
    return () => {
      growth.disconnect();
      removeEventListener('scroll', follow);
    };
  }, [element]);
  return isShownAtEnd || newest === undefined;
}

function toEnd(): void {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
}
