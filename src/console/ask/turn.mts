import type { ChatResult } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { Observable } from '../base/observable.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';

/** What POST /chat takes, as far as the page sends it. */
export const efforts = ['low', 'medium', 'high'] as const;
export type ChosenEffort = (typeof efforts)[number];

/** An image that goes with a message. */
export interface AttachedImage {
  readonly name: string;
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

/** One message of the user, with everything that goes with it. */
export interface UserMessage {
  readonly text: string;
  readonly images: readonly AttachedImage[];
  /** Means something in the first message only. */
  readonly system: string;
  /** null: the default one. */
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
  readonly schema: object | null;
}

export type ChatBody = Readonly<Record<string, unknown>>;

/** The body of the request. Without an id it begins a conversation. */
export function chatBodyOf(message: UserMessage, conversationId: string | null): ChatBody {
  const { text, images, system, model, effort, schema } = message;
  return {
    message: text,
    ...(conversationId !== null && { conversation_id: conversationId }),
    ...(conversationId === null && system.trim() !== '' && { system }),
    ...(model !== null && { model }),
    ...(effort !== null && { effort }),
    ...(schema !== null && { schema }),
    ...(images.length > 0 && { images: images.map(({ mediaType, data }) => ({ media_type: mediaType, data })) }),
  };
}

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

type Said = ConversationMessages['messages'][number];

/** A conversation as the page shows it: each message of the user with the answer after it. */
export function turnsOf({ messages }: ConversationMessages, nextId: () => number): ChatTurn[] {
  return messages.flatMap((said, index) => {
    if (said.role !== 'user') return [];
    const answer = messages[index + 1]?.content ?? '';
    return [new ChatTurn(nextId(), messageOf(said), { kind: 'done', result: null }, answer)];
  });
}

function messageOf({ content, images = [] }: Said): UserMessage {
  return { text: content, images: images.map(imageOf), system: '', model: null, effort: null, schema: null };
}

function imageOf({ media_type: mediaType, data }: NonNullable<Said['images']>[number]): AttachedImage {
  return { name: 'image', mediaType, data };
}

/** A turn that the service does not keep, because it did not end well. */
interface UnkeptTurn {
  readonly asked: UserMessage;
  readonly answer: string;
  /** It had no end yet when the page was left: the service may have kept it after all. */
  readonly wasOpen: boolean;
  /** How many turns that the service keeps stand before it. */
  readonly keptBefore: number;
}

interface RememberedTurns {
  /** Null before the first answer. */
  readonly conversationId: string | null;
  readonly turns: readonly UnkeptTurn[];
}

/** Remembers which turns on the page the service does not keep; without their images where these take too much room. */
export function rememberTurns(memory: TabMemory, conversationId: string | null, turns: readonly ChatTurn[]): void {
  const unkept = turns.flatMap((turn, index) => (turn.isKept ? [] : [unkeptTurn(turn, turns.slice(0, index))]));
  const bare = unkept.map((turn) => ({ ...turn, asked: { ...turn.asked, images: [] } }));
  const forms = unkept.length === 0 ? [] : [unkept, bare];
  memory.remember('turns-1', ...forms.map((form): RememberedTurns => ({ conversationId, turns: form })));
}

function unkeptTurn({ asked, text, isOpen }: ChatTurn, before: readonly ChatTurn[]): UnkeptTurn {
  const keptBefore = before.filter(({ isKept }) => isKept).length;
  return { asked, answer: text.value, wasOpen: isOpen, keptBefore };
}

/** The turns of a conversation that the service keeps, with those that this tab remembers in their places. */
export function withRemembered(
  memory: TabMemory,
  conversationId: string | null,
  kept: readonly ChatTurn[],
  nextId: () => number,
): readonly ChatTurn[] {
  const remembered = memory.recall<RememberedTurns>('turns-1');
  if (remembered === null || remembered.conversationId !== conversationId) return kept;
  const isKept = ({ asked, wasOpen, keptBefore }: UnkeptTurn) => wasOpen && kept[keptBefore]?.asked.text === asked.text;
  const missing = remembered.turns.filter((turn) => !isKept(turn));
  const before = (index: number) =>
    missing
      .filter(({ keptBefore }) => Math.min(keptBefore, kept.length) === index)
      .map(({ asked, answer }) => new ChatTurn(nextId(), asked, { kind: 'unfinished' }, answer));
  return [...kept.flatMap((turn, index) => [...before(index), turn]), ...before(kept.length)];
}
