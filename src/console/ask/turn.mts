import type { ChatResult, ConversationBody } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import { Observable } from '../base/observable.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';

export const efforts = ['low', 'medium', 'high'] as const;
export type ChosenEffort = (typeof efforts)[number];

/** Image or document attached to a message. */
export interface AttachedFile {
  readonly name: string;
  readonly mediaType: string;
  /** Content of the file in base64. */
  readonly data: string;
}

/** Message of the user with its images, documents and options. */
export interface UserMessage {
  readonly text: string;
  readonly images: readonly AttachedFile[];
  /** System text, sent only with the first message of a conversation. */
  readonly system: string;
  /** ID of the model; null for the default. */
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
  readonly schema: object | null;
}

/** Turn of a stored conversation that waits or runs. */
export type TurnElsewhere = NonNullable<ConversationBody['open_turn']>;

export type ChatBody = Readonly<Record<string, unknown>>;

export function isDocument({ mediaType }: Pick<AttachedFile, 'mediaType'>): boolean {
  return !mediaType.startsWith('image/');
}

/**
 * Returns a function that replaces the number of a file in an error of the API by the name of the file: `files.0: is no
 * PDF` becomes `“a.pdf” is no PDF`.
 */
export function fileNaming(files: readonly AttachedFile[]): (message: string) => string {
  const lists = { files: files.filter(isDocument), images: files.filter((file) => !isDocument(file)) };
  return (message) =>
    message.replace(/^(files|images)\.(\d+)(?:\.\w+)?: /, (path, list: keyof typeof lists, index: string) => {
      const file = lists[list][Number(index)];
      return file === undefined ? path : `“${file.name}” `;
    });
}

/** Builds the body of POST /chat. Without an ID, the request starts a conversation. */
export function chatBodyOf(message: UserMessage, conversationId: string | null): ChatBody {
  const { text, images: attached, system, model, effort, schema } = message;
  const images = attached.filter((file) => !isDocument(file));
  const documents = attached.filter(isDocument);
  return {
    message: text,
    ...(conversationId !== null && { conversation_id: conversationId }),
    ...(conversationId === null && system.trim() !== '' && { system }),
    ...(model !== null && { model }),
    ...(effort !== null && { effort }),
    ...(schema !== null && { schema }),
    ...(images.length > 0 && { images: images.map(({ mediaType, data }) => ({ media_type: mediaType, data })) }),
    ...(documents.length > 0 && {
      files: documents.map(({ name, mediaType, data }) => ({ name, media_type: mediaType, data })),
    }),
  };
}

/** Properties of an answer besides its text. The service stores only model, usage, and the marks of a stored answer. */
export type AnswerFigures = Pick<ChatResult, 'model' | 'usage'> &
  Partial<Pick<ChatResult, 'queue_ms' | 'duration_ms' | 'structured' | 'fallback'>> &
  Partial<Pick<Said, 'interrupted' | 'added_messages'>>;

/** The progress of an answer. Times are milliseconds since the epoch. */
export type TurnState =
  | { readonly kind: 'sent'; readonly sinceMs: number }
  | { readonly kind: 'queued'; readonly sinceMs: number; readonly position: number }
  | { readonly kind: 'running'; readonly sinceMs: number }
  /** The queue was full. The message is sent again at `atMs`. */
  | { readonly kind: 'retrying'; readonly atMs: number; readonly error: Error }
  | { readonly kind: 'done'; readonly result: AnswerFigures }
  | { readonly kind: 'stopped' }
  /** The tab has restored the turn after a reload. */
  | { readonly kind: 'unfinished' }
  | { readonly kind: 'failed'; readonly error: Error };

/** Owns a message on the page and its answer. */
export class ChatTurn {
  readonly id: number;
  readonly question: UserMessage;
  readonly state: Observable<TurnState>;
  /** Text of the answer so far. */
  readonly text: Observable<string>;
  /** Thoughts of the model so far. The service does not store them. */
  readonly thoughts = new Observable('');
  /** Id of the background job that answers; null if there is none, or before the service has accepted it. */
  job: string | null = null;
  /** Whether the message was sent by another page or program of the same client. Its text is only the beginning. */
  readonly isFromElsewhere: boolean;

  constructor(id: number, asked: UserMessage, state: TurnState, text = '', isFromElsewhere = false) {
    this.id = id;
    this.isFromElsewhere = isFromElsewhere;
    this.question = asked;
    this.state = new Observable(state);
    this.text = new Observable(text);
  }

  get isOpen(): boolean {
    return ['sent', 'queued', 'running', 'retrying'].includes(this.state.value.kind);
  }

  /** Whether the page shows a part of the answer: text or thoughts. */
  get hasAnswerPart(): boolean {
    return this.text.value !== '' || this.thoughts.value !== '';
  }

  /** Whether the service stores the turn in the conversation. */
  get isStored(): boolean {
    return this.state.value.kind === 'done';
  }
}

/** Builds the turn that another page or program of the same client has begun. */
export function turnFromElsewhere(id: number, { title, status }: TurnElsewhere, sinceMs: number): ChatTurn {
  const question = { text: title ?? '', images: [], system: '', model: null, effort: null, schema: null };
  return new ChatTurn(id, question, { kind: status === 'running' ? 'running' : 'sent', sinceMs }, '', true);
}

type Said = ConversationMessages['messages'][number];

/** Converts a stored conversation to turns: each message of the user with the answer after it. */
export function turnsOf({ messages }: ConversationMessages, nextId: () => number): ChatTurn[] {
  return messages.flatMap((said, index) => {
    if (said.role !== 'user') return [];
    const { content = '', model = null, usage = null, interrupted, added_messages } = messages[index + 1] ?? {};
    const marks = { ...(interrupted && { interrupted }), ...(added_messages && { added_messages }) };
    return [new ChatTurn(nextId(), messageOf(said), { kind: 'done', result: { model, usage, ...marks } }, content)];
  });
}

function messageOf({ content, images = [], files = [] }: Said): UserMessage {
  const documents = files.map(({ name, media_type: mediaType, data }) => ({
    name: name || 'document',
    mediaType,
    data,
  }));
  return {
    text: content,
    images: [...images.map(imageOf), ...documents],
    system: '',
    model: null,
    effort: null,
    schema: null,
  };
}

function imageOf({ media_type: mediaType, data }: NonNullable<Said['images']>[number]): AttachedFile {
  return { name: 'image', mediaType, data };
}

/** Turn that the service does not store, because it failed, was stopped or is still open. */
interface UnstoredTurn {
  readonly question: UserMessage;
  readonly answer: string;
  /** Background job of an open answer; null for other turns. */
  readonly job?: string | null;
  /** Whether the answer was still open when the user left the page: the service may have stored it since. */
  readonly wasOpen: boolean;
  /** Number of stored turns before this one. */
  readonly keptBefore: number;
}

/** Turns of a conversation that only this tab stores. */
interface RememberedConversation {
  /** ID of the conversation; before its first answer, the local name that the page gave it. */
  readonly conversationId: string | null;
  readonly turns: readonly UnstoredTurn[];
}

const memoryName = 'turns-3';
/** Maximum number of conversations with remembered turns. The oldest ones are dropped. */
const maxRemembered = 20;

/**
 * Remembers the turns that the service does not store. If there is not enough space, drops their images, then the other
 * conversations.
 */
export function rememberTurns(memory: TabMemory, conversationId: string | null, turns: readonly ChatTurn[]): void {
  const known = memory.recall<RememberedConversation[]>(memoryName) ?? [];
  const otherViews = known.filter((one) => one.conversationId !== conversationId).slice(1 - maxRemembered);
  const unstored = turns.flatMap((turn, index) =>
    turn.isStored || turn.isFromElsewhere ? [] : [unstoredTurn(turn, turns.slice(0, index))],
  );
  if (unstored.length === 0) return memory.remember(memoryName, ...(otherViews.length === 0 ? [] : [otherViews]));
  const bare = unstored.map((turn) => ({ ...turn, question: { ...turn.question, images: [] } }));
  const [whole, light] = [unstored, bare].map((form) => ({ conversationId, turns: form }));
  memory.remember(memoryName, [...otherViews, whole], [...otherViews, light], [light]);
}

function unstoredTurn({ question, text, isOpen, job }: ChatTurn, before: readonly ChatTurn[]): UnstoredTurn {
  const keptBefore = before.filter(({ isStored }) => isStored).length;
  return { question, answer: text.value, job, wasOpen: isOpen, keptBefore };
}

/** Restores a turn. The text of a job that still runs is read again from its beginning. */
function restoredTurn({ question, answer, job = null }: UnstoredTurn, id: number): ChatTurn {
  if (job === null) return new ChatTurn(id, question, { kind: 'unfinished' }, answer);
  const turn = new ChatTurn(id, question, { kind: 'sent', sinceMs: 0 });
  turn.job = job;
  return turn;
}

/** Inserts the remembered turns of a conversation between its stored ones, at their former positions. */
export function withRemembered(
  memory: TabMemory,
  conversationId: string | null,
  stored: readonly ChatTurn[],
  nextId: () => number,
): readonly ChatTurn[] {
  const all = memory.recall<RememberedConversation[]>(memoryName) ?? [];
  const remembered = all.find((one) => one.conversationId === conversationId);
  if (remembered === undefined) return stored;
  const wasStoredSince = ({ question: asked, wasOpen, keptBefore }: UnstoredTurn) =>
    wasOpen && stored[keptBefore]?.question.text === asked.text;
  const missing = remembered.turns.filter((turn) => !wasStoredSince(turn));
  const before = (index: number) =>
    missing
      .filter(({ keptBefore }) => Math.min(keptBefore, stored.length) === index)
      .map((turn) => restoredTurn(turn, nextId()));
  return [...stored.flatMap((turn, index) => [...before(index), turn]), ...before(stored.length)];
}
