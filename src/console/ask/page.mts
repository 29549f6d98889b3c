import { html } from 'htm/preact';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ModelEntry, ModelList } from '../../shared/api/models.js';
import { useLeaving, useLoad, useParts } from '../base/context.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { Conversations, useConversations } from '../conversations/list.mjs';
import { Chat, type ChatView } from './chat.mjs';
import { Composer } from './composer.mjs';
import { type Draft, readDraft, takesEffort, takesImages, useBackground, useDraft } from './draft.mjs';
import { SnippetDialog } from './snippets.mjs';
import { chatBodyOf, type UserMessage } from './turn.mjs';
import { Announcement, TurnList } from './turns.mjs';

/** A chat with the model. */
export function AskPage({ params }: PageProps) {
  const { api, clock, memory } = useParts();
  const chat = useMemo(() => new Chat(api, clock, memory), [api, clock, memory]);
  const view = useValue(chat.view);
  const isBusy = useValue(chat.isBusy);
  const page = useRef<HTMLElement>(null);
  const { change, ...composing } = useComposing(view);
  const [isSnippetOpen, setSnippetOpen] = useState(false);
  useConversation(chat, params);
  useAddress(view);
  useStopByEscape(chat, page);
  useFollowing(page, view.turns.at(-1)?.id);
  useLeaving(() => chat.remember());
  const clear = () => change({ text: '', images: [] });
  const send = (message: UserMessage) => {
    clear();
    void chat.ask(message);
  };
  const background = useBackground(view.conversationId, clear);
  const last = view.turns.at(-1);
  const { conversationId: id } = view;
  const isLeft = useValue(chat.left) !== null;
  const pages = useConversations(`${isBusy ? 'answering' : id} ${isLeft}`);
  const leave = (deleted: string) => {
    if (deleted === id) begin(chat);
  };
  return html`<div class="desk">
    <${Conversations} pages=${pages} openId=${id} onNew=${() => begin(chat)} onDeleted=${leave} />
    <section class="ask" ref=${page}>
    <h1 class="unseen">Ask</h1>
    <${TurnList} chat=${chat} view=${view} model=${composing.draft.model} effort=${takesEffort(composing.model) ? composing.draft.effort : null} takesImages=${takesImages(composing.model)} />
    ${last && html`<${Announcement} turn=${last} />`}
    <${Composer}
      ...${composing}
      onChange=${change}
      isBusy=${isBusy}
      onSend=${send}
      background=${background}
      onStop=${() => chat.stop()}
      onSnippet=${() => setSnippetOpen(true)}
      hasBegun=${view.conversationId !== null}
      system=${view.system}
    />
    ${isSnippetOpen && html`<${Snippet} view=${view} draft=${composing.draft} onClose=${() => setSnippetOpen(false)} />`}
    </section>
  </div>`;
}

/** The message that is being written, and the model that it goes to. */
function useComposing({ state }: ChatView) {
  const { memory } = useParts();
  const [draft, change] = useDraft(memory);
  const models = useModels();
  const model = chosenModel(models, draft.model);
  return { draft, change, models, model, read: readDraft(draft, { model, isReading: state === 'reading' }) };
}

/** Shows the conversation of the address, else what the tab remembers. */
function useConversation(chat: Chat, params: PageProps['params']): void {
  const id = params.conversation ?? params.id; // in old addresses of the page Conversations
  useEffect(() => {
    if (id !== undefined) void chat.read(id);
  }, [params]);
  useEffect(() => {
    if (id === undefined) chat.recall();
  }, [chat]);
}

/** Empty until the list is loaded. */
function useModels(): readonly ModelEntry[] {
  const [list] = useLoad<ModelList>('/models');
  return list.state === 'ready' ? list.value.models : [];
}

function chosenModel(models: readonly ModelEntry[], id: string | null): ModelEntry | undefined {
  return models.find((model) => (id === null ? model.default : model.id === id));
}

function begin(chat: Chat): void {
  chat.reset();
  location.hash = hrefOf('ask');
}

/** The address names the conversation, so that a reload and a bookmark lead back to it. */
function useAddress({ conversationId }: ChatView): void {
  useEffect(() => {
    if (conversationId === null) return;
    const address = hrefOf('ask', { conversation: conversationId });
    if (/^(#\/(ask|conversations)\b.*|#?\/?)$/.test(location.hash)) history.replaceState(null, '', address);
  }, [conversationId]);
}

/** Works wherever the focus is on this page. An open dialog takes the key itself. */
function useStopByEscape(chat: Chat, page: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const stop = (event: KeyboardEvent) => {
      const isShown = page.current?.closest('[hidden]') === null;
      if (event.key === 'Escape' && isShown && document.querySelector('dialog[open]') === null) chat.stop();
    };
    addEventListener('keydown', stop);
    return () => removeEventListener('keydown', stop);
  }, [chat]);
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

/** Shows the draft, else the last message, as a program would send it. */
function Snippet({ view, draft, onClose }: SnippetProps) {
  const { keys } = useParts();
  const sent = view.turns.at(-1);
  const message = messageOf(draft) ?? sent?.asked ?? { ...exampleOf(draft), schema: null };
  const id = message === sent?.asked && view.turns.length === 1 ? null : view.conversationId;
  const request = {
    url: new URL('../chat', location.href).href,
    body: chatBodyOf(message, id),
    needsKey: keys.key !== null,
  };
  return html`<${SnippetDialog} request=${request} onClose=${onClose} />`;
}

const nearPx = 60;

/** Scrolls with the growing answer while the reader is at the end of the page. A new turn always scrolls to the end. */
function useFollowing(element: RefObject<HTMLElement | null>, newest: number | undefined): void {
  useLayoutEffect(() => {
    if (newest !== undefined) toEnd();
  }, [newest]);
  useEffect(() => {
    if (element.current === null) return;
    let isAtEnd = true;
    const follow = () => {
      isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - nearPx;
    };
    const growth = new ResizeObserver(() => isAtEnd && toEnd());
    growth.observe(element.current);
    addEventListener('scroll', follow, { passive: true });
    return () => {
      growth.disconnect();
      removeEventListener('scroll', follow);
    };
  }, [element]);
}

function toEnd(): void {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
}
