import type { VersionBody } from '../../shared/api/version.js';
import { useLoad } from '../base/context.mjs';
import { html } from '../ui/html.mjs';
import { EmptyState, ErrorNotice } from '../ui/notices.mjs';
import type { Chat, ChatView } from './chat.mjs';
import type { ChatTurn } from './turn.mjs';
import { TurnArticle } from './turns.mjs';
import { useMarkdown } from './use-markdown.mjs';

interface TurnListProps {
  readonly chat: Chat;
  readonly view: ChatView;
  /** Whether the model that is chosen does. */
  readonly takesImages: boolean;
}

/** All that was said, oldest first. */
export function TurnList({ chat, view, takesImages }: TurnListProps) {
  const { turns, system, state } = view;
  const markdown = useMarkdown(turns.length > 0);
  const actions = {
    askAgain: (turn: ChatTurn) => void chat.askAgain(turn),
    askAnew: (turn: ChatTurn) => void chat.askAnew(turn),
  };
  return html`<div class="turns">
    ${system !== null && html`<details class="system"><summary>System text</summary><p class="source">${system}</p></details>`}
    ${turns.map((turn) => html`<${TurnArticle} key=${turn.id} turn=${turn} markdown=${markdown} actions=${actions} />`)}
    ${state === 'reading' && html`<p class="figures"><span class="spinner" />Reading the conversation</p>`}
    ${typeof state === 'object' && html`<${ErrorNotice} error=${state.unreadable} />`}
    ${turns.length === 0 && state === 'ready' && html`<${Welcome} takesImages=${takesImages} />`}
  </div>`;
}

function Welcome({ takesImages }: Pick<TurnListProps, 'takesImages'>) {
  const [version] = useLoad<VersionBody>('/version');
  const isDemo = version.state === 'ready' && version.value.model_cli.adapter === 'demo';
  return html`<${EmptyState} title="Ask the model">
    <p>Enter sends, Shift+Enter begins a new line, Escape stops an answer.${takesImages && ' Images can be pasted or dropped.'}</p>
    ${isDemo && html`<p>It is the demo model that answers here: a small program, not a language model.</p>`}
  <//>`;
}
