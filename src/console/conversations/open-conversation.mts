import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ConversationBody } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { ImageStrip } from '../ask/images.mjs';
import type { AttachedImage } from '../ask/turn.mjs';
import { useAction, useLoad, useParts } from '../base/context.mjs';
import { plural } from '../base/format.mjs';
import type { PageClock } from '../base/page-clock.mjs';
import { hrefOf } from '../base/router.mjs';
import { AnswerText, SystemText, useMarkdown } from '../ui/answer.mjs';
import { CopyButton, Dialog } from '../ui/controls.mjs';
import { ErrorNotice } from '../ui/notices.mjs';

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

/** Takes the focus, for readers who use the keyboard. */
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

function ConversationActions({ id, title, onDeleted }: ActionsProps) {
  const { api, clock } = useParts();
  const { run, failure } = useAction();
  const [isAsking, setAsking] = useState(false);
  const save = ({ format, type, ending }: (typeof formats)[number]) => {
    run(api.text(`${pathOf(id)}/messages?format=${format}`, { accept: type }), (text) =>
      saveFile(`conversation-${id}.${ending}`, type, text, clock),
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

/** A deletion is final, so the reader confirms it. */
function DeleteDialog({ id, title, onDeleted, onClose }: ActionsProps & { readonly onClose: () => void }) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const remove = () => run(api.json(pathOf(id), { method: 'DELETE' }), () => onDeleted(id));
  return html`<${Dialog} title="Delete this conversation?" onClose=${onClose}>
    <p>“${title}” is gone then, with all its messages. Nothing brings it back.</p>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    <div class="row end">
      <button type="button" class="button quiet" onClick=${onClose}>Keep it</button>
      <button type="button" class="button danger" disabled=${isRunning} onClick=${remove}>Delete it</button>
    </div>
  <//>`;
}

const revokeAfterMs = 60_000;

/** Has the browser save a text as a file. */
function saveFile(name: string, type: string, text: string, clock: PageClock): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  clock.after(revokeAfterMs, () => URL.revokeObjectURL(url)); // until then the browser may still read it
}

/** The path of a conversation in the API. */
export function pathOf(id: string): string {
  return `/chat/${encodeURIComponent(id)}`;
}

type SpokenMessage = ConversationMessages['messages'][number];

interface TranscriptProps {
  readonly conversation: ConversationMessages;
  readonly onForked: (id: string) => void;
}

/** All messages, oldest first. The reader can fork the conversation after each answer. */
export function Transcript({ conversation, onForked }: TranscriptProps) {
  const { conversation_id: id, system, messages } = conversation;
  const { api } = useParts();
  const markdown = useMarkdown(messages.length > 0);
  const { run, isRunning, failure } = useAction();
  const fork = (from: number) =>
    run(
      api.json<ConversationBody>(`${pathOf(id)}/fork`, { method: 'POST', body: { from } }),
      ({ conversation_id: forked }) => onForked(forked),
    );
  return html`
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    <div class="turns">
      <${SystemText} system=${system} />
      ${messages.map((message, index) =>
        message.role === 'user'
          ? html`<${UserMessage} key=${index} message=${message} />`
          : html`<${ModelMessage} key=${index} number=${index + 1} text=${message.content} markdown=${markdown} onFork=${isRunning ? null : fork} />`,
      )}
    </div>
  `;
}

interface ModelMessageProps {
  /** Counts from one. */
  readonly number: number;
  readonly text: string;
  readonly markdown: ReturnType<typeof useMarkdown>;
  /** null while one is being made. */
  readonly onFork: ((number: number) => void) | null;
}

function ModelMessage({ number, text, markdown, onFork }: ModelMessageProps) {
  return html`<article class="answer">
    <h3 class="unseen">The model</h3>
    <${AnswerText} text=${text} isWhole markdown=${markdown} />
    <div class="row">
      <${CopyButton} text=${() => text} />
      <button
        type="button"
        class="button quiet small"
        disabled=${onFork === null}
        aria-label=${`Fork from here, after message ${number}`}
        onClick=${() => onFork?.(number)}
      >
        Fork from here
      </button>
    </div>
  </article>`;
}

function UserMessage({ message }: { readonly message: SpokenMessage }) {
  const { content, images = [] } = message;
  const shown = images.map(
    ({ media_type: mediaType, data }, index): AttachedImage => ({ name: `Image ${index + 1}`, mediaType, data }),
  );
  return html`<article class="turn">
    <div class="asked">
      <h3 class="unseen">You</h3>
      <${ImageStrip} images=${shown} />
      <p class="source">${content}</p>
    </div>
  </article>`;
}
