import type { ChatResult } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { Observable } from '../base/observable.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';

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
  /** Used only in the first message. */
  readonly system: string;
  /** null: the default model. */
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
  readonly schema: object | null;
}

export type ChatBody = Readonly<Record<string, unknown>>;

/** The body of POST /chat. Without an ID it starts a conversation. */
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

/** What is known of an answer beside its text. The service stores only model and usage. */
export type AnswerFigures = Pick<ChatResult, 'model' | 'usage'> &
  Partial<Pick<ChatResult, 'queue_ms' | 'duration_ms' | 'structured'>>;

/** The progress of an answer. Times are milliseconds since the epoch. */
export type TurnState =
  | { readonly kind: 'sent'; readonly sinceMs: number }
  | { readonly kind: 'queued'; readonly sinceMs: number; readonly position: number }
  | { readonly kind: 'running'; readonly sinceMs: number }
  /** The queue was full. The message is sent again at this time. */
  | { readonly kind: 'retrying'; readonly atMs: number; readonly error: Error }
  | { readonly kind: 'done'; readonly result: AnswerFigures }
  | { readonly kind: 'stopped' }
  /** Remembered by this tab from before a reload. */
  | { readonly kind: 'unfinished' }
  | { readonly kind: 'failed'; readonly error: Error };

/** Owns one message on the page and its answer. */
export class ChatTurn {
  readonly id: number;
  readonly asked: UserMessage;
  readonly state: Observable<TurnState>;
  /** The answer so far. */
  readonly text: Observable<string>;

  constructor(id: number, asked: UserMessage, state: TurnState, text = '') {
    this.id = id;
    this.asked = asked;
    this.state = new Observable(state);
    this.text = new Observable(text);
  }

  get isOpen(): boolean {
    return ['sent', 'queued', 'running', 'retrying'].includes(this.state.value.kind);
  }

  /** Whether the service stores it in the conversation. */
  get isStored(): boolean {
    return this.state.value.kind === 'done';
  }
}

type Said = ConversationMessages['messages'][number];

/** A conversation as the page shows it: each message of the user with the answer after it. */
export function turnsOf({ messages }: ConversationMessages, nextId: () => number): ChatTurn[] {
  return messages.flatMap((said, index) => {
    if (said.role !== 'user') return [];
    const { content = '', model = null, usage = null } = messages[index + 1] ?? {};
    return [new ChatTurn(nextId(), messageOf(said), { kind: 'done', result: { model, usage } }, content)];
  });
}

function messageOf({ content, images = [] }: Said): UserMessage {
  return { text: content, images: images.map(imageOf), system: '', model: null, effort: null, schema: null };
}

function imageOf({ media_type: mediaType, data }: NonNullable<Said['images']>[number]): AttachedImage {
  return { name: 'image', mediaType, data };
}

/** A turn that failed or was stopped, so the service does not store it. */
interface UnstoredTurn {
  readonly asked: UserMessage;
  readonly answer: string;
  /** The answer was still open when the reader left the page: the service may have stored it since. */
  readonly wasOpen: boolean;
  /** How many stored turns come before it. */
  readonly keptBefore: number;
}

/** What this tab knows of a conversation, and the service does not. */
interface RememberedConversation {
  /** Before the first answer, the name that the page gave it. */
  readonly conversationId: string | null;
  readonly turns: readonly UnstoredTurn[];
}

const memoryName = 'turns-2';
/** The conversations that were on the page last. */
const maxRemembered = 20;

/** Remembers the turns that the service does not store; without their images if these take too much space. */
export function rememberTurns(memory: TabMemory, conversationId: string | null, turns: readonly ChatTurn[]): void {
  const known = memory.recall<RememberedConversation[]>(memoryName) ?? [];
  const others = known.filter((one) => one.conversationId !== conversationId).slice(1 - maxRemembered);
  const unstored = turns.flatMap((turn, index) => (turn.isStored ? [] : [unstoredTurn(turn, turns.slice(0, index))]));
  if (unstored.length === 0) return memory.remember(memoryName, ...(others.length === 0 ? [] : [others]));
  const bare = unstored.map((turn) => ({ ...turn, asked: { ...turn.asked, images: [] } }));
  const [whole, light] = [unstored, bare].map((form) => ({ conversationId, turns: form }));
  memory.remember(memoryName, [...others, whole], [...others, light], [light]);
}

function unstoredTurn({ asked, text, isOpen }: ChatTurn, before: readonly ChatTurn[]): UnstoredTurn {
  const keptBefore = before.filter(({ isStored }) => isStored).length;
  return { asked, answer: text.value, wasOpen: isOpen, keptBefore };
}

/** The stored turns of a conversation, with those that this tab remembers in their places. */
export function withRemembered(
  memory: TabMemory,
  conversationId: string | null,
  stored: readonly ChatTurn[],
  nextId: () => number,
): readonly ChatTurn[] {
  const all = memory.recall<RememberedConversation[]>(memoryName) ?? [];
  const remembered = all.find((one) => one.conversationId === conversationId);
  if (remembered === undefined) return stored;
  const wasStoredSince = ({ asked, wasOpen, keptBefore }: UnstoredTurn) =>
    wasOpen && stored[keptBefore]?.asked.text === asked.text;
  const missing = remembered.turns.filter((turn) => !wasStoredSince(turn));
  const before = (index: number) =>
    missing
      .filter(({ keptBefore }) => Math.min(keptBefore, stored.length) === index)
      .map(({ asked, answer }) => new ChatTurn(nextId(), asked, { kind: 'unfinished' }, answer));
  return [...stored.flatMap((turn, index) => [...before(index), turn]), ...before(stored.length)];
}
