import type { FunctionComponent } from 'preact';
import type { ChatResult } from '../../shared/api/chat.js';
import { useElapsed } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { costText, countText, durationText, plural } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import { CodeBlock, CopyButton } from '../ui/controls.mjs';
import { html } from '../ui/html.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import { ImageStrip } from './images.mjs';
import type { ChatTurn, TurnState } from './turn.mjs';

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

/** What a turn that has failed or was stopped offers. */
interface TurnActions {
  readonly askAgain: (turn: ChatTurn) => void;
  readonly askAnew: (turn: ChatTurn) => void;
}

interface TurnStateProps {
  readonly turn: ChatTurn;
  readonly state: TurnState;
  readonly actions: TurnActions;
}

/** How far the answer is, below it. */
function TurnStateLine({ turn, state, actions }: TurnStateProps) {
  switch (state.kind) {
    case 'sent':
      return html`<${Waiting} word="Sent" sinceMs=${state.sinceMs} />`;
    case 'queued':
      return html`<${Waiting} word=${`Number ${state.position} in the queue`} sinceMs=${state.sinceMs} />`;
    case 'running':
      return html`<${Waiting} word="Answering" sinceMs=${state.sinceMs} />`;
    case 'done':
      return state.result && html`<p class="figures">${figuresOf(state.result).join(' · ')}</p>`;
    case 'stopped':
      return html`<${Unkept} word="Stopped." turn=${turn} actions=${actions} />`;
    case 'unfinished':
      return html`<${Unkept} word="This answer was not finished." turn=${turn} actions=${actions} />`;
    case 'failed':
      return html`<${Failed} turn=${turn} error=${state.error} actions=${actions} />`;
  }
}

interface UnkeptProps {
  readonly word: string;
  readonly turn: ChatTurn;
  readonly actions: TurnActions;
}

function Unkept({ word, turn, actions }: UnkeptProps) {
  return html`<div class="row figures">
    <span>${word} The conversation goes on without it.</span>
    <button class="button small" onClick=${() => actions.askAgain(turn)}>Ask again</button>
  </div>`;
}

function Waiting({ word, sinceMs }: { readonly word: string; readonly sinceMs: number }) {
  const seconds = Math.floor(useElapsed(sinceMs) / 1000);
  return html`<p class="figures"><span class="spinner" aria-hidden="true" />${word} · ${seconds} s</p>`;
}

interface FailedProps {
  readonly turn: ChatTurn;
  readonly error: Error;
  readonly actions: TurnActions;
}

function Failed({ turn, error, actions }: FailedProps) {
  const isForgotten = error instanceof ApiError && error.body?.reason === 'conversation_unknown';
  return html`
    <${ErrorNotice} error=${error} onRetry=${() => actions.askAgain(turn)} />
    ${
      isForgotten &&
      html`<div class="row">
        <button class="button" onClick=${() => actions.askAnew(turn)}>Ask in a new conversation</button>
      </div>`
    }
  `;
}

/** What an answer has taken, in words. */
export function figuresOf({ model, usage, queue_ms: queueMs, duration_ms: durationMs }: ChatResult): string[] {
  const { input_tokens: input = null, output_tokens: output = null, cost_usd: cost } = usage ?? {};
  return [
    ...(model === null ? [] : [model]),
    ...(input === null ? [] : [`${plural(input, 'token')} in`]),
    ...(output === null ? [] : [`${countText(output)} out`]),
    ...(cost === undefined ? [] : [costText(cost)]),
    durationText(durationMs),
    ...(queueMs < 100 ? [] : [`${durationText(queueMs)} in the queue`]),
  ];
}

const readAloudLength = 600;

/** Says to screen readers how the last turn is doing. The stream itself would be a stammer. */
export function Announcement({ turn }: { readonly turn: ChatTurn }) {
  const state = useValue(turn.state);
  return html`<p class="unseen" role="status">${wordsOf(turn, state)}</p>`;
}

function wordsOf(turn: ChatTurn, state: TurnState): string {
  const words: Readonly<Record<TurnState['kind'], () => string>> = {
    sent: () => 'Sent.',
    queued: () => 'Waiting in the queue.',
    running: () => 'The model is answering.',
    done: () => (state.kind === 'done' && state.result ? `Answer: ${turn.text.value.slice(0, readAloudLength)}` : ''),
    stopped: () => 'Stopped.',
    unfinished: () => '',
    failed: () => '', // its notice is an alert
  };
  return words[state.kind]();
}
