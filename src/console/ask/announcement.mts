import { useValue } from '../observable.mjs';
import { html } from '../ui/html.mjs';
import type { ChatTurn, TurnState } from './turn.mjs';

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
