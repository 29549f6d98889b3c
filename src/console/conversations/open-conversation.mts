import { useEffect, useRef, useState } from 'preact/hooks';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { useLoad, useParts } from '../base/context.mjs';
import { asError } from '../base/failures.mjs';
import { plural } from '../base/format.mjs';
import type { PageClock } from '../base/page-clock.mjs';
import { hrefOf } from '../base/router.mjs';
import { Dialog } from '../ui/controls.mjs';
import { html } from '../ui/html.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import { pathOf, Transcript } from './transcript.mjs';

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

interface ActionsProps {
  readonly id: string;
  readonly title: string;
  readonly onDeleted: (id: string) => void;
}

const formats = [
  { name: 'Markdown', format: 'markdown', type: 'text/markdown', ending: 'md' },
  { name: 'JSON', format: 'json', type: 'application/json', ending: 'json' },
] as const;

/** What can be done with a conversation as a whole. */
function ConversationActions({ id, title, onDeleted }: ActionsProps) {
  const { api, clock } = useParts();
  const [failure, setFailure] = useState<Error | null>(null);
  const [isAsking, setAsking] = useState(false);
  const save = ({ format, type, ending }: (typeof formats)[number]) => {
    setFailure(null);
    api.text(`${pathOf(id)}/messages?format=${format}`, { accept: type }).then(
      (text) => saveFile(`conversation-${id}.${ending}`, type, text, clock),
      (error: unknown) => setFailure(asError(error)),
    );
  };
  return html`
    <div class="row">
      <a class="button primary" href=${hrefOf('ask', { conversation: id })}>Continue</a>
      ${formats.map((one) => html`<button type="button" class="button" onClick=${() => save(one)}>Save as ${one.name}</button>`)}
      <button type="button" class="button danger" onClick=${() => setAsking(true)}>Delete</button>
    </div>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    ${isAsking && html`<${DeleteDialog} id=${id} title=${title} onDeleted=${onDeleted} onClose=${() => setAsking(false)} />`}
  `;
}

/** Nothing brings a conversation back, so it is asked for twice. */
function DeleteDialog({ id, title, onDeleted, onClose }: ActionsProps & { readonly onClose: () => void }) {
  const { api } = useParts();
  const [state, setState] = useState<'asking' | 'deleting' | { readonly failure: Error }>('asking');
  const remove = () => {
    setState('deleting');
    api.json(pathOf(id), { method: 'DELETE' }).then(
      () => onDeleted(id),
      (error: unknown) => setState({ failure: asError(error) }),
    );
  };
  return html`<${Dialog} title="Delete this conversation?" onClose=${onClose}>
    <p>“${title}” is gone then, with all its messages. Nothing brings it back.</p>
    ${typeof state === 'object' && html`<${ErrorNotice} error=${state.failure} />`}
    <div class="row end">
      <button type="button" class="button quiet" onClick=${onClose}>Keep it</button>
      <button type="button" class="button danger" disabled=${state === 'deleting'} onClick=${remove}>Delete it</button>
    </div>
  <//>`;
}

const keptMs = 60_000;

/** Has the browser save a text as a file. */
function saveFile(name: string, type: string, text: string, clock: PageClock): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  clock.after(keptMs, () => URL.revokeObjectURL(url)); // until then the browser may still read it
}
