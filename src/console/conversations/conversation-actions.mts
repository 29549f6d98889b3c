import { useState } from 'preact/hooks';
import { useParts } from '../context.mjs';
import { asError } from '../failures.mjs';
import { hrefOf } from '../router.mjs';
import { Dialog } from '../ui/dialog.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import { pathOf } from './paths.mjs';
import { saveFile } from './saved-file.mjs';

interface ActionsProps {
  readonly id: string;
  readonly title: string;
  readonly onDeleted: (id: string) => void;
}

const formats = [
  { name: 'Markdown', format: 'markdown', type: 'text/markdown', ending: 'md' },
  { name: 'JSON', format: 'json', type: 'application/json', ending: 'json' },
] as const;

/** What can be done with a conversation as a whole. */
export function ConversationActions({ id, title, onDeleted }: ActionsProps) {
  const { api, clock } = useParts();
  const [failure, setFailure] = useState<Error | null>(null);
  const [isAsking, setAsking] = useState(false);
  const save = ({ format, type, ending }: (typeof formats)[number]) => {
    setFailure(null);
    api.text(`${pathOf(id)}/messages?format=${format}`, { accept: type }).then(
      (text) => saveFile(`conversation-${id}.${ending}`, type, text, clock),
      (error: unknown) => setFailure(asError(error)),
    );
  };
  return html`
    <div class="row">
      <a class="button primary" href=${hrefOf('ask', { conversation: id })}>Continue</a>
      ${formats.map((one) => html`<button type="button" class="button" onClick=${() => save(one)}>Save as ${one.name}</button>`)}
      <button type="button" class="button danger" onClick=${() => setAsking(true)}>Delete</button>
    </div>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    ${isAsking && html`<${DeleteDialog} id=${id} title=${title} onDeleted=${onDeleted} onClose=${() => setAsking(false)} />`}
  `;
}

/** Nothing brings a conversation back, so it is asked for twice. */
function DeleteDialog({ id, title, onDeleted, onClose }: ActionsProps & { readonly onClose: () => void }) {
  const { api } = useParts();
  const [state, setState] = useState<'asking' | 'deleting' | { readonly failure: Error }>('asking');
  const remove = () => {
    setState('deleting');
    api.json(pathOf(id), { method: 'DELETE' }).then(
      () => onDeleted(id),
      (error: unknown) => setState({ failure: asError(error) }),
    );
  };
  return html`<${Dialog} title="Delete this conversation?" onClose=${onClose}>
    <p>“${title}” is gone then, with all its messages. Nothing brings it back.</p>
    ${typeof state === 'object' && html`<${ErrorNotice} error=${state.failure} />`}
    <div class="row end">
      <button type="button" class="button quiet" onClick=${onClose}>Keep it</button>
      <button type="button" class="button danger" disabled=${state === 'deleting'} onClick=${remove}>Delete it</button>
    </div>
  <//>`;
}
