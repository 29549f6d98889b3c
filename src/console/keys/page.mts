import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import type { KeyView, NewKey } from '../../shared/api/keys.js';
import { useAction, useLoad, useParts } from '../base/context.mjs';
import type { PageProps } from '../base/router.mjs';
import { CodeBlock, Dialog, Field } from '../ui/controls.mjs';
import { EmptyState, ErrorNotice } from '../ui/notices.mjs';
import { type Column, Table } from '../ui/tables.mjs';

interface Keys {
  readonly keys: readonly KeyView[];
}

/** Question that the page asks before it changes a key. */
interface Question {
  readonly act: 'replace' | 'delete';
  readonly name: string;
}

/** Shows the keys that the user may manage, and makes, replaces and deletes keys. */
export function KeysPage(_: PageProps) {
  const [loaded, reload] = useLoad<Keys>('/keys');
  const [made, setMade] = useState<NewKey | null>(null);
  const [question, setQuestion] = useState<Question | null>(null);
  const finish = (key: NewKey | null) => {
    setMade(key);
    setQuestion(null);
    reload();
  };
  return html`
    <h1>Keys</h1>
    ${loaded.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading the keys</p>`}
    ${loaded.state === 'failed' && html`<${ErrorNotice} error=${loaded.error} onRetry=${reload} />`}
    ${made !== null && html`<${MadeKeyNotice} made=${made} onClose=${() => setMade(null)} />`}
    ${loaded.state === 'ready' && html`<${KeyForm} onMade=${finish} /><${KeyTable} keys=${loaded.value.keys} onAsk=${setQuestion} />`}
    ${question !== null && html`<${Confirmation} key=${question.name} question=${question} onDone=${finish} onClose=${() => setQuestion(null)} />`}
  `;
}

/** Shows a new key, once. */
function MadeKeyNotice({ made, onClose }: { readonly made: NewKey; readonly onClose: () => void }) {
  return html`<section class="notice warn" aria-labelledby="made-key">
    <h2 id="made-key">The key ${made.name}</h2>
    <p>Copy it now. The service cannot show it again.</p>
    <${CodeBlock} code=${made.key} language="" label="The new key" />
    <button type="button" class="button" onClick=${onClose}>I have copied it</button>
  </section>`;
}

/** Form for a new key. Without further options, a person's key may do what the person may do. */
function KeyForm({ onMade }: { readonly onMade: (key: NewKey) => void }) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const make = (event: Event) => {
    event.preventDefault();
    const entered = new FormData(form.current as HTMLFormElement);
    const name = String(entered.get('name')).trim();
    const expires = String(entered.get('expires') ?? '');
    run(api.json<NewKey>('/keys', { method: 'POST', body: { name, ...(expires !== '' && { expires }) } }), (key) => {
      form.current?.reset();
      onMade(key);
    });
  };
  return html`<section class="card" aria-label="New key">
    <h2>New key</h2>
    <form ref=${form} onSubmit=${make}>
      <${Field} label="Name" hint="Letters, digits and . _ -">
        <input name="name" required maxlength="64" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" autocomplete="off" spellcheck=${false} />
      <//>
      <${Field} label="Expires" hint="Optional: the service refuses the key from this day on.">
        <input name="expires" type="date" />
      <//>
      ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
      <button class="button primary" disabled=${isRunning}>Make a key</button>
    </form>
  </section>`;
}

interface KeyTableProps extends Keys {
  readonly onAsk: (question: Question) => void;
}

function KeyTable({ keys, onAsk }: KeyTableProps) {
  if (keys.length === 0) return html`<${EmptyState} title="No keys"><p>Programs use the service with a key.</p><//>`;
  const columns: Column<KeyView>[] = [
    { title: 'Name', cell: ({ name }) => name },
    { title: 'Made by', cell: ({ source, owner }) => (source === 'operator' ? 'the operator' : owner) },
    { title: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
    { title: 'Limits', cell: limitsText },
    { title: 'Expires', cell: ({ expires }) => expires ?? 'never' },
    {
      title: 'Change',
      cell: ({ source, name }) =>
        source === 'http' &&
        html`<div class="row">
          <button type="button" class="button small" aria-label=${`Replace ${name}`} onClick=${() => onAsk({ act: 'replace', name })}>Replace</button>
          <button type="button" class="button small danger" aria-label=${`Delete ${name}`} onClick=${() => onAsk({ act: 'delete', name })}>Delete</button>
        </div>`,
    },
  ];
  return html`<${Table} caption="Keys" columns=${columns} rows=${keys} keyOf=${({ name }: KeyView) => name} />`;
}

/** Returns the limits of a key, in the spelling of the keys file. */
export function limitsText({ rate, concurrent, queue, weight, models, tokens, cost, group }: KeyView): string {
  const limits = { rate, concurrent, queue, weight, models: models?.join('+') ?? null, tokens, cost, group };
  const set = Object.entries(limits).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]));
  return set.join(' ') || 'those of the service';
}

interface ConfirmationProps {
  readonly question: Question;
  /** Called after the change, with the new key if there is one. */
  readonly onDone: (key: NewKey | null) => void;
  readonly onClose: () => void;
}

/** Asks before a key stops working. */
function Confirmation({ question: { act, name }, onDone, onClose }: ConfirmationProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const path = `/keys/${encodeURIComponent(name)}`;
  const change = () => {
    if (act === 'replace') run(api.json<NewKey>(`${path}/rotate`, { method: 'POST', body: {} }), onDone);
    else run(api.json(path, { method: 'DELETE' }), () => onDone(null));
  };
  return html`<${Dialog} title=${act === 'replace' ? `Replace the key ${name}?` : `Delete the key ${name}?`} onClose=${onClose}>
    <p>Programs that use this key are refused at once.${act === 'replace' && ' They need the new key.'}</p>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    <div class="row end">
      <button type="button" class="button quiet" onClick=${onClose}>Cancel</button>
      <button type="button" class="button ${act === 'delete' ? 'danger' : 'primary'}" disabled=${isRunning} onClick=${change}>${act === 'replace' ? 'Replace' : 'Delete'}</button>
    </div>
  <//>`;
}
