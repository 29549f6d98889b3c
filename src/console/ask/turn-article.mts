import type { FunctionComponent } from 'preact';
import { useValue } from '../observable.mjs';
import { CodeBlock } from '../ui/code-block.mjs';
import { CopyButton } from '../ui/copy-button.mjs';
import { html } from '../ui/html.mjs';
import { ImageStrip } from './image-strip.mjs';
import type { ChatTurn, TurnState } from './turn.mjs';
import { type TurnActions, TurnStateLine } from './turn-state.mjs';

/** Draws Markdown. Its code is large, so that it is read once there is something to draw. */
export type MarkdownView = FunctionComponent<{ readonly text: string; readonly isWhole: boolean }>;

interface TurnArticleProps {
  readonly turn: ChatTurn;
  /** null: not there yet. */
  readonly markdown: MarkdownView | null;
  readonly actions: TurnActions;
}

/** A message and its answer. Only the one that grows is drawn again. */
export function TurnArticle({ turn, markdown, actions }: TurnArticleProps) {
  const state = useValue(turn.state);
  const { asked } = turn;
  return html`<article class="turn">
    <div class="asked">
      <h2 class="unseen">You</h2>
      <${ImageStrip} images=${asked.images} />
      <p class="source">${asked.text}</p>
    </div>
    <div class="answer">
      <h2 class="unseen">The model</h2>
      <${Answer} turn=${turn} state=${state} markdown=${markdown} />
      <div class="row between">
        <${TurnStateLine} turn=${turn} state=${state} actions=${actions} />
        ${state.kind === 'done' && html`<${CopyButton} text=${() => turn.text.value} label="Copy" />`}
      </div>
    </div>
  </article>`;
}

interface AnswerProps {
  readonly turn: ChatTurn;
  readonly state: TurnState;
  readonly markdown: MarkdownView | null;
}

function Answer({ turn, state, markdown }: AnswerProps) {
  const text = useValue(turn.text);
  const value = state.kind === 'done' ? state.result?.structured : undefined;
  if (value !== undefined) return html`<${CodeBlock} code=${JSON.stringify(value, null, 2)} language="json" />`;
  if (text === '') return null;
  if (turn.asked.schema !== null || markdown === null) return html`<p class="source">${text}</p>`;
  return html`<${markdown} text=${text} isWhole=${!turn.isOpen} />`;
}
