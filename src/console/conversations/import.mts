import { html } from 'htm/preact';
import { useRef } from 'preact/hooks';
import type { ConversationBody } from '../../shared/api/chat.js';
import { useAction, useParts } from '../base/context.mjs';
import { hrefOf } from '../base/router.mjs';
import { Icon } from '../ui/controls.mjs';
import { ErrorNotice } from '../ui/notices.mjs';

/** Larger files are not read: the service would refuse them. */
const maxFileBytes = 64 * 1024 ** 2;

/** Returns the request for a conversation that was saved as JSON. Rejects with the reason if the file is none. */
async function importOf(file: Pick<Blob, 'size' | 'text'>): Promise<object> {
  if (file.size > maxFileBytes) throw new Error('this file is larger than 64 MB');
  const saved: unknown = await file
    .text()
    .then(JSON.parse)
    .catch(() => null);
  if (typeof saved !== 'object' || saved === null || !('messages' in saved))
    throw new Error('this file is no conversation that was saved as JSON');
  return saved;
}

/** Button that makes a conversation from a saved file, and opens it. `onImported` closes what is above the page. */
export function ImportButton({ onImported }: { readonly onImported: () => void }) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const input = useRef<HTMLInputElement>(null);
  const read = async (file: File) =>
    api.json<ConversationBody>('/chat/import', { method: 'POST', body: await importOf(file) });
  const choose = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const [file] = currentTarget.files ?? [];
    currentTarget.value = ''; // the same file may be chosen again
    if (file === undefined) return;
    run(read(file), ({ conversation_id: conversation }) => {
      location.hash = hrefOf('ask', { conversation });
      onImported();
    });
  };
  return html`
    <button type="button" class="button icon" aria-label="Import a conversation" title="Import a conversation" disabled=${isRunning} onClick=${() => input.current?.click()}><${Icon} name="open" /></button>
    <input ref=${input} type="file" accept=".json,application/json" aria-label="File of a conversation" hidden onChange=${choose} />
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  `;
}
