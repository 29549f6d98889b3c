import type { ChatResult } from '../../shared/api/chat.js';
import { ApiError } from '../failures.mjs';
import { costText, countText, durationText, plural } from '../format.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import type { ChatTurn, TurnState } from './turn.mjs';
import { useElapsed } from './use-elapsed.mjs';

/** What a turn that has failed or was stopped offers. */
export interface TurnActions {
  readonly askAgain: (turn: ChatTurn) => void;
  readonly askAnew: (turn: ChatTurn) => void;
}

interface TurnStateProps {
  readonly turn: ChatTurn;
  readonly state: TurnState;
  readonly actions: TurnActions;
}

/** How far the answer is, below it. */
export function TurnStateLine({ turn, state, actions }: TurnStateProps) {
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
