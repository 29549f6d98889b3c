import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ModelEntry } from '../../shared/api/models.js';
import type { VersionBody } from '../../shared/api/version.js';
import { useLoad, useNow, useParts } from '../base/context.mjs';
import { ApiError, titleOf } from '../base/failures.mjs';
import { costText, countText, durationText, plural, timeText } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import type { ListedConversation } from '../conversations/entry.mjs';
import { AnswerText, PlainText, SystemText, useMarkdown } from '../ui/answer.mjs';
import { CopyButton } from '../ui/controls.mjs';
import { EmptyState, ErrorNotice } from '../ui/notices.mjs';
import type { Chat, ChatView } from './chat.mjs';
import { filesFault } from './draft.mjs';
import { FileFaults, FileStrip, pasteFiles, useDrop, useFileDialog, useFiles } from './images.mjs';
import {
  type AnswerFigures,
  type AttachedFile,
  type ChatTurn,
  type ChosenEffort,
  fileNaming,
  type TurnState,
  type UserMessage,
} from './turn.mjs';
import { choicesIn, VersionPager } from './versions.mjs';

interface TurnListProps {
  readonly chat: Chat;
  /** How long the service stores a conversation after its last message; null if it has listed none. */
  readonly lifetimeMs: number | null;
  readonly view: ChatView;
  /** Stored versions of the conversation. */
  readonly versions: readonly ListedConversation[];
  /** Whether the chosen model takes images. */
  readonly takesImages: boolean;
  /** Selected model; undefined if it is not listed. */
  readonly entry: ModelEntry | undefined;
  /** Model selected in the form, which answers a message that is edited or repeated. */
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
}

/** Shows the turns of the conversation, oldest first. */
export function TurnList({ chat, view, versions, lifetimeMs, takesImages, entry, model, effort }: TurnListProps) {
  const { turns, system, state } = view;
  const list = useScrollingToFound(view);
  const options = { model, effort };
  const markdown = useMarkdown(turns.length > 0);
  const choices = choicesIn(view, versions);
  // The pager has the same key in all versions, so it keeps the focus.
  const pager = (index: number) => {
    if (choices.size === 0) return undefined;
    const before = turns.slice(0, index).filter(({ isStored }) => isStored).length;
    const choice = (turns[index - 1]?.isStored ?? true) ? choices.get(before) : undefined;
    const open = (id: string) => void chat.openVersion(id, before);
    return choice && html`<${VersionPager} key=${`versions ${before}`} choice=${choice} onOpen=${open} />`;
  };
  return html`<div class="turns" ref=${list} data-focus="[data-field=text]">
    <${SystemText} system=${system} />
    ${turns.flatMap((turn, index) => [pager(index), html`<${TurnArticle} key=${turn.id} turn=${turn} markdown=${markdown} chat=${chat} choices=${options} entry=${entry} lifetimeMs=${lifetimeMs} />`]).concat(pager(turns.length))}
    ${state === 'reading' && html`<p class="figures"><span class="spinner" />Reading the conversation</p>`}
    ${typeof state === 'object' && (isGone(state.failure) ? html`<${GoneNotice} lifetimeMs=${lifetimeMs} />` : html`<${ErrorNotice} error=${state.failure} />`)}
    ${turns.length === 0 && state === 'ready' && html`<${Welcome} takesImages=${takesImages} />`}
  </div>`;
}

/** Scrolls to the message that a search has found, when the list with the returned reference shows it. */
function useScrollingToFound({ found, turns, state }: ChatView) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (found === null || state !== 'ready') return;
    const turn = turns.filter(({ isStored }) => isStored)[Math.floor(found.message / 2)];
    const part = found.message % 2 === 0 ? 'asked' : 'answer';
    const message = turn && list.current?.querySelector(`[data-turn="${turn.id}"] > .${part}`);
    message?.scrollIntoView({ block: 'start', behavior: 'instant' });
  }, [found, state]);
  return list;
}

/** Whether the service has no such conversation, or hides it from this client. */
function isGone(error: Error): boolean {
  return error instanceof ApiError && (error.status === 404 || error.body?.reason === 'conversation_unknown');
}

interface GoneNoticeProps extends Pick<TurnListProps, 'lifetimeMs'> {
  /** Expiry of the conversation in milliseconds since the epoch. */
  readonly expiresAt?: number | undefined;
  readonly children?: ComponentChildren;
}

/** Reports that a conversation was not found. The service does not say why. */
function GoneNotice({ lifetimeMs, expiresAt, children }: GoneNoticeProps) {
  const now = useNow();
  const hasExpired = expiresAt !== undefined && expiresAt <= now;
  const life =
    lifetimeMs === null
      ? ''
      : `The service stores a conversation for ${durationText(lifetimeMs)} after its last message. `;
  const cause = hasExpired
    ? `It ended ${timeText(expiresAt)}.`
    : 'This one has expired, was deleted, or belongs to another client.';
  return html`<div class="notice bad" role="alert">
    <strong>${hasExpired ? 'This conversation has expired' : 'Not found: this conversation has probably expired'}</strong>
    <p>${life}${cause}</p>
    ${children}
  </div>`;
}

function Welcome({ takesImages }: Pick<TurnListProps, 'takesImages'>) {
  const [version] = useLoad<VersionBody>('/version');
  const isDemo = version.state === 'ready' && version.value.model_cli.adapter === 'demo';
  return html`<${EmptyState} title="Ask the model">
    <p><span class="of-keyboard">Enter sends, Shift+Enter begins a new line, Escape stops an answer. </span>${takesImages ? 'Images, PDFs and texts' : 'PDFs and texts'} can be pasted or dropped.</p>
    ${isDemo && html`<p>The demo model answers here: a small program, not a language model.</p>`}
  <//>`;
}

type MarkdownCode = ReturnType<typeof useMarkdown>;

interface TurnProps {
  readonly turn: ChatTurn;
  /** Chat that sends a failed message again. */
  readonly chat: Chat;
  readonly lifetimeMs: TurnListProps['lifetimeMs'];
}

interface TurnArticleProps extends TurnProps, Pick<TurnListProps, 'entry'> {
  readonly markdown: MarkdownCode;
  readonly choices: Pick<UserMessage, 'model' | 'effort'>;
}

/** Shows a message and its answer. While an answer grows, only its own turn is drawn again. */
function TurnArticle({ turn, chat, markdown, choices, entry, lifetimeMs }: TurnArticleProps) {
  const state = useValue(turn.state);
  const isBusy = useValue(chat.isBusy);
  const [isEditing, setEditing] = useState(false);
  const [edited, setEdited] = useState<EditedMessage | null>(null);
  const { question: asked } = turn;
  const leave = (edit: EditedMessage | null) => {
    const isSame = edit?.text === asked.text && edit.images === asked.images;
    setEdited(isSame ? null : edit);
    setEditing(false);
  };
  const askInstead = ({ text, images }: EditedMessage) => {
    leave(null);
    void chat.askInstead(turn, { ...asked, ...choices, text, images });
  };
  return html`<article class="turn" data-turn=${turn.id}>
    <div class="asked">
      <h2 class="unseen">You</h2>
      ${
        isEditing
          ? html`<${EditForm} edit=${edited ?? asked} model=${entry} onSend=${askInstead} onLeave=${leave} />`
          : html`<${FileStrip} files=${asked.images} /><${PlainText} text=${asked.text} />`
      }
    </div>
    ${!isEditing && !turn.isOpen && !isBusy && html`<div class="row end acts"><button type="button" class="button quiet small" onClick=${() => setEditing(true)}>${edited === null ? 'Edit' : 'Edit (not sent)'}</button></div>`}
    <div class="answer">
      <h2 class="unseen">The model</h2>
      <${Answer} turn=${turn} state=${state} markdown=${markdown} />
      ${addedTo(state).map((text) => html`<p class="muted">You added during the answer: ${text}</p>`)}
      <div class="row between">
        <${TurnStateLine} turn=${turn} state=${state} chat=${chat} lifetimeMs=${lifetimeMs} />
        ${state.kind === 'done' && html`<${AnswerActions} turn=${turn} chat=${chat} isBusy=${isBusy} onAgain=${() => askInstead(asked)} />`}
      </div>
    </div>
  </article>`;
}

type EditedMessage = Pick<UserMessage, 'text' | 'images'>;

interface EditFormProps {
  readonly edit: EditedMessage;
  /** Selected model; undefined if it is not listed. */
  readonly model: ModelEntry | undefined;
  readonly onSend: (edit: EditedMessage) => void;
  /** Called with the edit to restore when the form is opened again; null discards it. */
  readonly onLeave: (edit: EditedMessage | null) => void;
}

/**
 * Form that replaces the message and its files. Escape closes it and saves the edit for the next time; Ctrl+Enter
 * sends.
 */
function EditForm({ edit, model, onSend, onLeave }: EditFormProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [images, setImages] = useState(edit.images);
  const [addFiles, faults] = useFiles({ files: images, model, selection: model?.id ?? null, onChange: setImages });
  const [fileInput, chooseFiles] = useFileDialog(addFiles, model);
  const fault = filesFault(images, model);
  useEffect(() => field.current?.focus(), []);
  const edited = () => ({ text: field.current?.value ?? '', images });
  const send = (event: Event) => {
    event.preventDefault();
    if (fault === null && edited().text.trim() !== '') onSend(edited());
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing) send(event);
    if (event.key !== 'Escape' || event.isComposing) return;
    event.preventDefault(); // else Escape would also stop an answer
    onLeave(edited());
  };
  const remove = (removed: AttachedFile) => setImages(images.filter((file) => file !== removed));
  return html`<form class="edit" onSubmit=${send} onKeyDown=${press} ...${useDrop(addFiles)}>
    <${FileStrip} files=${images} onRemove=${remove} />
    <${FileFaults} faults=${fault === null ? faults : [...faults, fault]} />
    <textarea ref=${field} aria-label="Your question" rows="3" onPaste=${pasteFiles(addFiles)}>${edit.text}</textarea>
    <small>Your edit starts a new version. The arrows ‹ and › show the earlier one.</small>
    <div class="row end">
      ${fileInput}
      <button type="button" class="button quiet small" onClick=${chooseFiles}>File</button>
      <button type="button" class="button quiet small" onClick=${() => onLeave(null)}>Cancel</button>
      <button class="button primary small" title="Ctrl+Enter">Send edit</button>
    </div>
  </form>`;
}

interface AnswerActionsProps extends Pick<TurnProps, 'turn' | 'chat'> {
  readonly isBusy: boolean;
  readonly onAgain: () => void;
}

function AnswerActions({ turn, chat, isBusy, onAgain }: AnswerActionsProps) {
  const isLast = chat.view.value.turns.at(-1) === turn;
  return html`<div class="row acts">
    ${isLast && !isBusy && html`<button type="button" class="button quiet small" onClick=${onAgain}>Retry</button>`}
    ${!isLast && !isBusy && html`<button type="button" class="button quiet small" onClick=${() => void chat.branchAfter(turn)}>Branch here</button>`}
    <${CopyButton} text=${() => turn.text.value} label="Copy" />
  </div>`;
}

interface AnswerProps {
  readonly turn: ChatTurn;
  readonly state: TurnState;
  readonly markdown: MarkdownCode;
}

function Answer({ turn, state, markdown }: AnswerProps) {
  const text = useValue(turn.text);
  const thoughts = useValue(turn.thoughts);
  const value = state.kind === 'done' ? state.result.structured : undefined;
  const drawn = turn.question.schema === null ? markdown : null; // a JSON value is incomplete while it is streamed
  return html`<${AnswerText} text=${text} thoughts=${thoughts} value=${value} isWhole=${!turn.isOpen} markdown=${drawn} />`;
}

/** Shows the progress of an answer below it. */
function TurnStateLine({ turn, state, chat, lifetimeMs }: TurnProps & { readonly state: TurnState }) {
  switch (state.kind) {
    case 'sent':
      return html`<${Sent} sinceMs=${state.sinceMs} />`;
    case 'queued':
      return html`<${Waiting} word=${`Number ${state.position} in the queue`} sinceMs=${state.sinceMs} />`;
    case 'running':
      return html`<${Waiting} word="Answering" sinceMs=${state.sinceMs} />`;
    case 'retrying':
      return html`<${Retrying} state=${state} />`;
    case 'done':
      return html`<p class="figures">${figuresOf(state.result).join(' · ')}</p>`;
    case 'stopped':
      return html`<${Unfinished} word="Stopped. This answer is not saved." turn=${turn} chat=${chat} />`;
    case 'unfinished':
      return html`<${Unfinished} word="This answer was interrupted and is not saved." turn=${turn} chat=${chat} />`;
    case 'failed':
      return html`<${Failed} error=${state.error} turn=${turn} chat=${chat} lifetimeMs=${lifetimeMs} />`;
  }
}

function Unfinished({ word, turn, chat }: Pick<TurnProps, 'turn' | 'chat'> & { readonly word: string }) {
  return html`<div class="row figures">
    <span>${word}</span>
    <button class="button small" onClick=${() => void chat.askAgain(turn)}>Retry</button>
  </div>`;
}

/** Shows that a message was sent. While the user is asked for the key, the service has not accepted it. */
function Sent({ sinceMs }: { readonly sinceMs: number }) {
  const isAsked = useValue(useParts().keys.question) !== 'none';
  if (isAsked) return html`<p class="figures">Waiting for your key</p>`;
  return html`<${Waiting} word="Sent" sinceMs=${sinceMs} />`;
}

function Waiting({ word, sinceMs }: { readonly word: string; readonly sinceMs: number }) {
  const seconds = Math.floor(Math.max(0, useNow() - sinceMs) / 1000);
  return html`<p class="figures"><span class="spinner" aria-hidden="true" />${word} · ${seconds} s</p>`;
}

/** Shows the seconds until the next attempt. */
function Retrying({ state }: { readonly state: TurnState & { kind: 'retrying' } }) {
  const seconds = Math.max(0, Math.ceil((state.atMs - useNow()) / 1000));
  return html`<p class="figures"><span class="spinner" aria-hidden="true" />${titleOf(state.error)}. Retrying in ${seconds} s</p>`;
}

function Failed({ error, turn, chat, lifetimeMs }: TurnProps & { readonly error: Error }) {
  if (!isGone(error))
    return html`<${ErrorNotice} error=${error} hasText=${turn.hasAnswerPart} naming=${fileNaming(turn.question.images)} onRetry=${() => void chat.askAgain(turn)} />`;
  const expiresAt = chat.expiry.get(chat.view.value.conversationId ?? '');
  return html`<${GoneNotice} lifetimeMs=${lifetimeMs} expiresAt=${expiresAt}>
    <div class="row">
      <button class="button" onClick=${() => void chat.askAnew(turn)}>Ask in a new conversation</button>
    </div>
  <//>`;
}

/** Returns the messages that the user has added to a stored answer. */
function addedTo(state: TurnState): readonly string[] {
  return state.kind === 'done' ? (state.result.added_messages ?? []).map(({ content }) => content) : [];
}

/** Returns model, tokens, cost and times of an answer as texts. */
function figuresOf({
  model,
  fallback = [],
  usage,
  queue_ms: queueMs = 0,
  duration_ms: durationMs,
  interrupted,
}: AnswerFigures): string[] {
  const { input_tokens: input = null, output_tokens: output = null, cost_usd: cost } = usage ?? {};
  return [
    ...(model === null ? [] : [model]),
    ...fallback.map((passed) => `instead of ${passed.model} (${passed.reason})`),
    ...(input === null ? [] : [`${plural(input, 'token')} in`]),
    ...(output === null ? [] : [`${countText(output)} out`]),
    ...(cost === undefined ? [] : [costText(cost)]),
    ...(durationMs === undefined ? [] : [durationText(durationMs)]),
    ...(queueMs < 100 ? [] : [`${durationText(queueMs)} in the queue`]),
    ...(interrupted === true ? ['ended early'] : []),
  ];
}

const readAloudLength = 600;

/** Announces the state of the last turn to screen readers, not each piece of the stream. */
export function Announcement({ turn }: { readonly turn: ChatTurn }) {
  const state = useValue(turn.state);
  return html`<p class="unseen" role="status">${wordsOf(turn, state)}</p>`;
}

/** Whether this page received the answer: the service stores no duration. */
function isNew(state: TurnState): boolean {
  return state.kind === 'done' && state.result.duration_ms !== undefined;
}

function wordsOf(turn: ChatTurn, state: TurnState): string {
  const words: Readonly<Record<TurnState['kind'], () => string>> = {
    sent: () => 'Sent.',
    queued: () => 'Waiting in the queue.',
    running: () => 'The model is answering.',
    retrying: () => 'The queue is full. The message will be sent again.',
    done: () => (isNew(state) ? `Answer: ${turn.text.value.slice(0, readAloudLength)}` : ''),
    stopped: () => 'Stopped.',
    unfinished: () => '',
    failed: () => '', // the error notice is an alert
  };
  return words[state.kind]();
}
