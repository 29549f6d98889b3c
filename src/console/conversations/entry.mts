import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ConversationBody } from '../../shared/api/chat.js';
import type { ConversationList } from '../../shared/api/conversations.js';
import type { Api } from '../base/api.mjs';
import { useAction, useParts } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { plural, rowTimeText } from '../base/format.mjs';
import { hrefOf } from '../base/router.mjs';
import { saveFile } from '../base/save-file.mjs';
import { CopyButton, Dialog, Icon } from '../ui/controls.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import { readVersions } from './versions.mjs';

export type ListedConversation = ConversationList['conversations'][number];

interface ItemProps {
  readonly item: ListedConversation;
}

export function titleOf({ title }: ListedConversation): string {
  return withoutMarks(title) || 'An image';
}

/** Removes the marks of Markdown for emphasis, code, headings, notes and links from the words of a message. */
export function withoutMarks(text: string): string {
  return text
    .replace(/!?\[([^\]\n]+)\]\([^)\s]*\)/g, '$1')
    .replace(/\[\^[^\]\s]+\]/g, '')
    .replace(/^\s*#{1,6}\s+/gm, '')
    .replace(/(?<![\w*])(\*{1,3})(?=\S)([^*\n]+)(?<=\S)\1(?![\w*])/g, '$2')
    .replace(/`+/g, '');
}

interface EntryProps extends ItemProps {
  /** State of an answer that this page waits for. */
  readonly status?: string | undefined;
  /** Words that were searched; empty without a search. */
  readonly search: string;
}

/** Shows a conversation. If a search has found it, shows the place of the words: in the whole title, or in a message. */
export function Entry({ item, status, search }: EntryProps) {
  const { clock } = useParts();
  const { match, last_activity_at: at, message_count: count } = item;
  const isInMessage = match !== undefined && match.message !== null;
  const title = marked(titleOf(item), search);
  return html`
    <span class=${Array.isArray(title) && title.length > 1 ? undefined : 'cut'}>${title}</span>
    ${isInMessage && html`<small class="place">${marked(withoutMarks(match.text), search)}</small>`}
    <small class="muted figure">${status || `${rowTimeText(at, clock.now())} · ${plural(count, 'message')}`}</small>
  `;
}

/** Marks the words of a search in a text. */
function marked(text: string, search: string): ComponentChildren {
  const words = search.split(/\s+/).filter(Boolean);
  if (words.length === 0) return text;
  const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  const parts = text.split(new RegExp(`(${escaped.join('|')})`, 'giu'));
  return parts.map((part, index) => (index % 2 === 0 ? part : html`<mark>${part}</mark>`));
}

/** Actions on a listed conversation, in addition to opening it. */
const acts = [
  { kind: 'rename', word: 'Rename', icon: 'pencil' },
  { kind: 'save', word: 'Save or share', icon: 'save' },
  { kind: 'delete', word: 'Delete', icon: 'bin' },
] as const;
export type ActKind = (typeof acts)[number]['kind'];

export function EntryActions({ item, onAct }: ItemProps & { readonly onAct: (kind: ActKind) => void }) {
  return html`<div class="acts">
    ${acts.map(
      ({ kind, word, icon }) => html`<button
        type="button"
        class="button quiet icon"
        title=${word}
        aria-label=${`${word} “${titleOf(item)}”`}
        onClick=${() => onAct(kind)}
      ><${Icon} name=${icon} /></button>`,
    )}
  </div>`;
}

interface RenameFormProps extends ItemProps {
  /** Title that the user typed before; null if no title is to be restored. */
  readonly typed: string | null;
  readonly onRenamed: (item: ListedConversation) => void;
  /** Called when the form closes, with the typed title if it is to be restored later. */
  readonly onEnd: (typed?: string) => void;
}

/**
 * Form that replaces the entry. Enter saves. Escape closes the form; it has the typed title when it is opened again. An
 * empty field resets the title to the first words.
 */
export function RenameForm({ item, typed, onRenamed, onEnd }: RenameFormProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const field = useRef<HTMLInputElement>(null);
  // before the form is painted, because the text would replace what the user has typed by then
  useLayoutEffect(() => {
    if (field.current === null) return;
    field.current.value = typed ?? item.title; // as an attribute, each new list would replace what the user types
    field.current.select();
  }, []);
  const save = (event: Event) => {
    event.preventDefault();
    const title = field.current?.value.trim() || null;
    if (title === item.title) return onEnd();
    run(renameAll(api, item.conversation_id, title), (renamed) => {
      onRenamed({ ...item, title: renamed.title ?? '' });
      onEnd();
    });
  };
  const leave = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.preventDefault(); // else Escape would also close a dialog or stop an answer
    onEnd(field.current?.value);
  };
  return html`<form class="rename" onSubmit=${save} onKeyDown=${leave}>
    <input ref=${field} aria-label="Title" maxlength="200" placeholder="First words" disabled=${isRunning} />
    <button class="button primary small" disabled=${isRunning}>Save</button>
    <button type="button" class="button quiet small" onClick=${() => onEnd()}>Cancel</button>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  </form>`;
}

/** Renames a conversation, then its other versions: the most recently active one is in the list. */
async function renameAll(api: Api, id: string, title: string | null): Promise<ConversationBody> {
  const rename = (one: string) => api.json<ConversationBody>(pathOf(one), { method: 'PATCH', body: { title } });
  const renamed = await rename(id);
  const otherIds = (await readVersions(api, id)).map((version) => version.conversation_id).filter((one) => one !== id);
  for (const other of otherIds) await unlessGone(rename(other));
  return renamed;
}

/** Ignores that a conversation does not exist any more. */
async function unlessGone(request: Promise<unknown>): Promise<void> {
  await request.catch((error) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}

interface DeleteDialogProps extends ItemProps {
  readonly onDeleted: (ids: readonly string[]) => void;
  readonly onClose: () => void;
}

/** Asks the user to confirm the deletion of a conversation with all its versions, because it is final. */
export function DeleteDialog({ item, onDeleted, onClose }: DeleteDialogProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const reading = useAction();
  const { conversation_id: id } = item;
  const [ids, setIds] = useState<readonly string[] | null>(null);
  useEffect(() => reading.run(readVersions(api, id), (found) => setIds(found.map((one) => one.conversation_id))), []);
  const count = ids?.length ?? 1;
  const removeAll = async (all: readonly string[]) => {
    for (const one of all) await unlessGone(api.json(pathOf(one), { method: 'DELETE' }));
    return all;
  };
  const remove = () => run(removeAll(ids === null || ids.length === 0 ? [id] : ids), onDeleted);
  return html`<${Dialog} title="Delete this conversation?" onClose=${onClose}>
    <p>“${titleOf(item)}” and all its messages ${count > 1 && `in ${count} versions `}will be deleted permanently.</p>
    ${(failure ?? reading.failure) !== null && html`<${ErrorNotice} error=${failure ?? reading.failure} />`}
    <div class="row end">
      <button type="button" class="button quiet" onClick=${onClose}>Cancel</button>
      <button type="button" class="button danger" disabled=${isRunning || ids === null} onClick=${remove}>${count > 1 ? `Delete all ${count} versions` : 'Delete'}</button>
    </div>
  <//>`;
}

/** Returns the path of a conversation in the API. */
export function pathOf(id: string): string {
  return `/chat/${encodeURIComponent(id)}`;
}

const formats = [
  { name: 'Markdown', format: 'markdown', type: 'text/markdown', ending: 'md' },
  { name: 'JSON', format: 'json', type: 'application/json', ending: 'json' },
] as const;

/** Dialog that saves a stored conversation as a file, or copies its address. */
export function SaveDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { api, clock } = useParts();
  const { run, failure } = useAction();
  const save = ({ format, type, ending }: (typeof formats)[number]) => {
    run(api.text(`${pathOf(id)}/messages?format=${format}`, { accept: type }), (text) => {
      saveFile(`conversation-${id}.${ending}`, type, text, clock);
      onClose();
    });
  };
  const address = () => new URL(hrefOf('ask', { conversation: id }), location.href).href;
  return html`<${Dialog} title="Save or share this conversation" onClose=${onClose}>
    <p>A file contains all finished answers. Markdown omits images. <em>Import</em> reads a file of JSON.</p>
    <p>The link opens the conversation for the same client only: the same key, person, local user or address.</p>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    <div class="row end">
      <${CopyButton} text=${address} label="Copy link" />
      ${formats.map((one) => html`<button type="button" class="button" onClick=${() => save(one)}>Save as ${one.name}</button>`)}
    </div>
  <//>`;
}
