import { html } from 'htm/preact';
import { useAction, useParts } from '../base/context.mjs';
import type { PageClock } from '../base/page-clock.mjs';
import { Dialog } from '../ui/controls.mjs';
import { ErrorNotice } from '../ui/notices.mjs';

/** The path of a conversation in the API. */
export function pathOf(id: string): string {
  return `/chat/${encodeURIComponent(id)}`;
}

const formats = [
  { name: 'Markdown', format: 'markdown', type: 'text/markdown', ending: 'md' },
  { name: 'JSON', format: 'json', type: 'application/json', ending: 'json' },
] as const;

/** Saves a stored conversation as a file. */
export function SaveDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { api, clock } = useParts();
  const { run, failure } = useAction();
  const save = ({ format, type, ending }: (typeof formats)[number]) => {
    run(api.text(`${pathOf(id)}/messages?format=${format}`, { accept: type }), (text) => {
      saveFile(`conversation-${id}.${ending}`, type, text, clock);
      onClose();
    });
  };
  return html`<${Dialog} title="Save this conversation" onClose=${onClose}>
    <p>The file has every finished answer. Markdown leaves images out.</p>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    <div class="row end">
      ${formats.map((one) => html`<button type="button" class="button" onClick=${() => save(one)}>Save as ${one.name}</button>`)}
    </div>
  <//>`;
}

const revokeAfterMs = 60_000;

/** Has the browser save a text as a file. */
function saveFile(name: string, type: string, text: string, clock: PageClock): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  clock.after(revokeAfterMs, () => URL.revokeObjectURL(url)); // until then the browser may still read it
}
