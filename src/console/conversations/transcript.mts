import { useState } from 'preact/hooks';
import type { ConversationBody } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { ImageStrip } from '../ask/images.mjs';
import type { AttachedImage } from '../ask/turn.mjs';
import type { MarkdownView } from '../ask/turns.mjs';
import { useMarkdown } from '../ask/use-markdown.mjs';
import { useParts } from '../base/context.mjs';
import { asError } from '../base/failures.mjs';
import { CopyButton } from '../ui/controls.mjs';
import { html } from '../ui/html.mjs';
import { ErrorNotice } from '../ui/notices.mjs';

/** Where a conversation is in the API. */
export function pathOf(id: string): string {
  return `/chat/${encodeURIComponent(id)}`;
}

type SpokenMessage = ConversationMessages['messages'][number];

interface TranscriptProps {
  readonly conversation: ConversationMessages;
  readonly onForked: (id: string) => void;
}

/** All that was said, oldest first. From the end of each turn another conversation can begin. */
export function Transcript({ conversation, onForked }: TranscriptProps) {
  const { conversation_id: id, system, messages } = conversation;
  const { api } = useParts();
  const markdown = useMarkdown(messages.length > 0);
  const [fork, setFork] = useState<'none' | 'forking' | { readonly failure: Error }>('none');
  const begin = (from: number) => {
    setFork('forking');
    api.json<ConversationBody>(`${pathOf(id)}/fork`, { method: 'POST', body: { from } }).then(
      ({ conversation_id: forked }) => {
        setFork('none');
        onForked(forked);
      },
      (error: unknown) => setFork({ failure: asError(error) }),
    );
  };
  return html`
    ${typeof fork === 'object' && html`<${ErrorNotice} error=${fork.failure} />`}
    <div class="turns">
      ${system !== null && html`<details class="system"><summary>System text</summary><p class="source">${system}</p></details>`}
      ${messages.map((message, index) =>
        message.role === 'user'
          ? html`<${UserMessage} key=${index} message=${message} />`
          : html`<${ModelMessage} key=${index} number=${index + 1} text=${message.content} markdown=${markdown} onFork=${fork === 'forking' ? null : begin} />`,
      )}
    </div>
  `;
}

interface ModelMessageProps {
  /** Counts from one. */
  readonly number: number;
  readonly text: string;
  readonly markdown: MarkdownView | null;
  /** null while one is being made. */
  readonly onFork: ((number: number) => void) | null;
}

function ModelMessage({ number, text, markdown, onFork }: ModelMessageProps) {
  return html`<article class="answer">
    <h3 class="unseen">The model</h3>
    ${markdown === null ? html`<p class="source">${text}</p>` : html`<${markdown} text=${text} isWhole />`}
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
