import type { ChatResult } from '../../shared/api/chat.js';
import { Observable } from '../observable.mjs';
import type { UserMessage } from './asked.mjs';

/** How far the answer to a message is. Times are milliseconds since the epoch. */
export type TurnState =
  | { readonly kind: 'sent'; readonly sinceMs: number }
  | { readonly kind: 'queued'; readonly sinceMs: number; readonly position: number }
  | { readonly kind: 'running'; readonly sinceMs: number }
  /** Without figures where it was read back. */
  | { readonly kind: 'done'; readonly result: ChatResult | null }
  | { readonly kind: 'stopped' }
  /** As this tab remembers it from before a reload. */
  | { readonly kind: 'unfinished' }
  | { readonly kind: 'failed'; readonly error: Error };

/** Owns one message on the page and its answer. */
export class ChatTurn {
  readonly id: number;
  readonly asked: UserMessage;
  readonly state: Observable<TurnState>;
  /** The answer as far as it has come. */
  readonly text: Observable<string>;

  constructor(id: number, asked: UserMessage, state: TurnState, text = '') {
    this.id = id;
    this.asked = asked;
    this.state = new Observable(state);
    this.text = new Observable(text);
  }

  get isOpen(): boolean {
    return ['sent', 'queued', 'running'].includes(this.state.value.kind);
  }

  /** Whether the service keeps it as a part of the conversation. */
  get isKept(): boolean {
    return this.state.value.kind === 'done';
  }
}
