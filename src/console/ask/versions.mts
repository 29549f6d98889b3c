import { html } from 'htm/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useParts } from '../base/context.mjs';
import { useValue } from '../base/observable.mjs';
import type { ListedConversation } from '../conversations/entry.mjs';
import { type Choice, choicesOf, readVersions, unstoredVersion } from '../conversations/versions.mjs';
import type { ChatView } from './chat.mjs';

/**
 * Returns the stored versions of the conversation on the page, with itself; empty until they are read, and if the
 * service lists none. Reads them again when `changes` changes.
 */
export function useVersions({ conversationId, origin }: ChatView, changes: string): readonly ListedConversation[] {
  const { api, link, keys } = useParts();
  const [versions, setVersions] = useState<readonly ListedConversation[]>([]);
  const isUp = useValue(link.state) === 'up';
  const hasKey = useValue(keys.hasKey);
  const id = conversationId ?? origin;
  useEffect(() => {
    if (id === null || !isUp) return;
    let isWanted = true;
    readVersions(api, id).then(
      (found) => isWanted && setVersions(found),
      () => {}, // the list of conversations shows why they cannot be read
    );
    return () => {
      isWanted = false;
    };
  }, [api, id, changes, isUp, hasKey]);
  return useMemo(() => (versions.some((one) => one.conversation_id === id) ? versions : []), [versions, id]);
}

/** Returns the choices between versions by the number of stored turns before them. */
export function choicesIn(view: ChatView, versions: readonly ListedConversation[]): ReadonlyMap<number, Choice> {
  const { conversationId, origin, turns, state } = view;
  const known = versions.find((one) => one.conversation_id === (conversationId ?? origin));
  if (known === undefined || state === 'reading') return new Map();
  const messageCount = 2 * turns.filter(({ isStored }) => isStored).length;
  const current = conversationId === null ? unstoredVersion(known) : { ...known, message_count: messageCount };
  return choicesOf(current, versions);
}

interface VersionPagerProps {
  readonly choice: Choice;
  readonly onOpen: (id: string) => void;
}

/** Shows which version of a message is on the page, and opens the others. */
export function VersionPager({ choice: { ids, shown }, onOpen }: VersionPagerProps) {
  // A disabled button would lose the focus.
  const button = (name: string, sign: string, id: string | undefined) =>
    html`<button type="button" class="button quiet small" aria-label=${name} title=${name} aria-disabled=${id === undefined ? 'true' : undefined} onClick=${() => id !== undefined && onOpen(id)}>${sign}</button>`;
  return html`<div class="row end versions" role="group" aria-label="Versions of this message">
    ${button('Previous version', '‹', ids[shown - 1])}
    <span role="status"><span class="unseen">Version </span>${shown + 1}<span aria-hidden="true">/</span><span class="unseen"> of </span>${ids.length}</span>
    ${button('Next version', '›', ids[shown + 1])}
  </div>`;
}
