import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Announcement } from '../ask/announcement.mjs';
import { chatBodyOf } from '../ask/asked.mjs';
import { Chat, type ChatView } from '../ask/chat.mjs';
import { Composer } from '../ask/composer.mjs';
import { type Draft, emptyDraft, messageOf } from '../ask/draft.mjs';
import { SnippetDialog } from '../ask/snippet-dialog.mjs';
import { TurnList } from '../ask/turn-list.mjs';
import { useBackground } from '../ask/use-background.mjs';
import { useFollowing } from '../ask/use-following.mjs';
import { useParts } from '../context.mjs';
import { useValue } from '../observable.mjs';
import type { PageProps } from '../pages.mjs';
import { hrefOf } from '../router.mjs';
import { html } from '../ui/html.mjs';

/** A chat with the model. */
export function AskPage({ params }: PageProps) {
  const { api, clock } = useParts();
  const chat = useMemo(() => new Chat(api, clock), [api, clock]);
  const view = useValue(chat.view);
  const isBusy = useValue(chat.isBusy);
  const page = useRef<HTMLElement>(null);
  const [draft, setDraft] = useState(emptyDraft);
  const [isSnippetOpen, setSnippetOpen] = useState(false);
  useConversation(chat, params);
  useAddress(view);
  useStopByEscape(chat, page);
  useFollowing(page, view.turns.at(-1)?.id);
  const send = () => {
    const message = messageOf(draft);
    if (message === null) return;
    setDraft({ ...draft, text: '', images: [] });
    void chat.ask(message);
  };
  const background = useBackground(draft, view.conversationId, () => setDraft({ ...draft, text: '', images: [] }));
  const last = view.turns.at(-1);
  return html`<section class="ask" ref=${page}>
    <h1 class="unseen">Ask</h1>
    <${TurnList} chat=${chat} view=${view} />
    ${last && html`<${Announcement} turn=${last} />`}
    <${Composer}
      draft=${draft}
      onChange=${(change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }))}
      isBusy=${isBusy}
      onSend=${send}
      background=${background}
      onStop=${() => chat.stop()}
      onSnippet=${() => setSnippetOpen(true)}
      hasBegun=${view.conversationId !== null}
      system=${view.system}
      onNew=${isEmpty(view) ? null : () => begin(chat)}
    />
    ${isSnippetOpen && html`<${Snippet} view=${view} draft=${draft} onClose=${() => setSnippetOpen(false)} />`}
  </section>`;
}

/** Of the address. */
function useConversation(chat: Chat, params: PageProps['params']): void {
  useEffect(() => {
    if (params.conversation !== undefined) void chat.read(params.conversation);
  }, [params]);
}

function isEmpty({ turns, conversationId, state }: ChatView): boolean {
  return turns.length === 0 && conversationId === null && state === 'ready';
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
    if (location.hash.startsWith('#/ask') || location.hash === '') history.replaceState(null, '', address);
  }, [conversationId]);
}

/** Wherever the focus is on this page, but for a dialog in front of it, which takes the key for itself. */
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

/** Of the message that is being written, else of the last one that was sent. */
function Snippet({ view, draft, onClose }: SnippetProps) {
  const { keys } = useParts();
  const sent = view.turns.at(-1);
  const example = { ...draft, text: 'Hello, my name is Ada', schemaText: '' };
  const message = messageOf(draft) ?? sent?.asked ?? messageOf(example);
  if (message === null) return null;
  const id = message === sent?.asked && view.turns.length === 1 ? null : view.conversationId;
  const request = {
    url: new URL('../chat', location.href).href,
    body: chatBodyOf(message, id),
    needsKey: keys.key !== null,
  };
  return html`<${SnippetDialog} request=${request} onClose=${onClose} />`;
}
