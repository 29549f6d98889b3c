import { useEffect, useRef } from 'preact/hooks';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { plural } from '../format.mjs';
import { hrefOf } from '../router.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import { useLoad } from '../use-load.mjs';
import { ConversationActions } from './conversation-actions.mjs';
import { pathOf } from './paths.mjs';
import { Transcript } from './transcript.mjs';

interface OpenProps {
  readonly id: string;
  readonly onDeleted: (id: string) => void;
  readonly onForked: (id: string) => void;
}

/** One conversation, read back. */
export function OpenConversation({ id, onDeleted, onForked }: OpenProps) {
  const [read, reload] = useLoad<ConversationMessages>(`${pathOf(id)}/messages`);
  return html`<section class="talk" aria-label="Conversation">
    <a class="back" href=${hrefOf('conversations')}>← All conversations</a>
    ${read.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading the conversation</p>`}
    ${read.state === 'failed' && html`<${ErrorNotice} error=${read.error} onRetry=${reload} />`}
    ${
      read.state === 'ready' &&
      html`
        <${Heading} conversation=${read.value} onDeleted=${onDeleted} />
        <${Transcript} conversation=${read.value} onForked=${onForked} />
      `
    }
  </section>`;
}

interface HeadingProps {
  readonly conversation: ConversationMessages;
  readonly onDeleted: (id: string) => void;
}

/** Takes the focus, so that whoever has opened it by the keyboard stands in it. */
function Heading({ conversation, onDeleted }: HeadingProps) {
  const { conversation_id: id, messages } = conversation;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [id]);
  const title = messages[0]?.content.slice(0, 80) || 'An image';
  return html`<header>
    <h2 ref=${heading} tabindex="-1">${title}</h2>
    <small class="muted figure">${plural(messages.length, 'message')} · <code>${id}</code></small>
    <${ConversationActions} key=${id} id=${id} title=${title} onDeleted=${onDeleted} />
  </header>`;
}
