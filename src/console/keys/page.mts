import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { useAction, useLoad, useParts } from '../base/context.mjs';
import { plural } from '../base/format.mjs';
import type { PageProps } from '../base/router.mjs';
import { documentAddress } from '../setup/documents.mjs';
import { hasNoKeys, isAdministrator, useCaller } from '../ui/caller.mjs';
import { CodeBlock, Dialog, Field } from '../ui/controls.mjs';
import { EmptyState, ErrorNotice, StatusDot } from '../ui/notices.mjs';
import { type Column, Table } from '../ui/tables.mjs';
import { optionsIn, RightsFields } from './rights.mjs';
import type { FreshKey, ShownKey } from './shown-key.mjs';

interface Keys {
  readonly keys: readonly ShownKey[];
}

/** Change of a key for which the page opens a dialog. */
interface Question {
  readonly act: 'change' | 'replace' | 'delete';
  readonly listed: ShownKey;
}

/** Shows the keys that the user may manage, and makes, replaces and deletes keys. */
export function KeysPage(_: PageProps) {
  const caller = useCaller();
  const isKeyless = hasNoKeys(caller);
  const [loaded, reload] = useLoad<Keys>(caller === null || isKeyless ? null : '/keys');
  const [made, setMade] = useState<FreshKey | null>(null);
  const [question, setQuestion] = useState<Question | null>(null);
  const isAdmin = isAdministrator(caller);
  const finish = (key: FreshKey | null) => {
    if (key !== null || question?.listed.name === made?.name) setMade(key);
    setQuestion(null);
    reload();
  };
  return html`
    <h1>Keys</h1>
    ${isKeyless && html`<${EmptyState} title="No keys for you"><p>Keys are for administrators, and for people whom a proxy has signed on. <a href=${documentAddress('clients#keys')}>How the service uses keys</a></p><//>`}
    ${!isKeyless && loaded.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading the keys</p>`}
    ${loaded.state === 'failed' && html`<${ErrorNotice} error=${loaded.error} onRetry=${reload} />`}
    ${made !== null && html`<${MadeKeyNotice} made=${made} onClose=${() => setMade(null)} />`}
    ${loaded.state === 'ready' && html`<${KeyForm} isAdmin=${isAdmin} onMade=${finish} /><${KeyTable} keys=${loaded.value.keys} isAdmin=${isAdmin} onAsk=${setQuestion} />`}
    ${question !== null && html`<${question.act === 'change' ? ChangeDialog : Confirmation} key=${question.listed.name} question=${question} onDone=${finish} onClose=${() => setQuestion(null)} />`}
  `;
}

/** Shows a new key, once. */
function MadeKeyNotice({ made, onClose }: { readonly made: FreshKey; readonly onClose: () => void }) {
  return html`<section class="notice warn" aria-labelledby="made-key">
    <h2 id="made-key">The key ${made.name}</h2>
    <p>Copy it now. The service cannot show it again.</p>
    <${CodeBlock} code=${made.key} language="" label="The new key" />
    <button type="button" class="button" onClick=${onClose}>I have copied it</button>
  </section>`;
}

interface KeyFormProps {
  /** Whether the user may set rights and limits. The key of a person may do what the person may do. */
  readonly isAdmin: boolean;
  readonly onMade: (key: FreshKey) => void;
}

function KeyForm({ isAdmin, onMade }: KeyFormProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const make = (event: Event) => {
    event.preventDefault();
    const entered = new FormData(form.current as HTMLFormElement);
    const name = String(entered.get('name')).trim();
    run(api.json<FreshKey>('/keys', { method: 'POST', body: { name, ...optionsIn(entered) } }), (key) => {
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
      <${RightsFields} isAdmin=${isAdmin} />
      ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
      <button class="button primary" disabled=${isRunning}>Make a key</button>
    </form>
  </section>`;
}

interface KeyTableProps extends Keys {
  readonly isAdmin: boolean;
  readonly onAsk: (question: Question) => void;
}

function KeyTable({ keys, isAdmin, onAsk }: KeyTableProps) {
  const now = useParts().clock.now();
  if (keys.length === 0) return html`<${EmptyState} title="No keys"><p>Programs use the service with a key.</p><//>`;
  const columns: Column<ShownKey>[] = [
    { title: 'Name', cell: ({ name }) => name },
    { title: 'Made by', cell: ({ source, owner }) => (source === 'operator' ? 'the operator' : owner) },
    { title: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
    { title: 'Limits', cell: limitsText },
    {
      title: 'Expires',
      cell: ({ expires }) =>
        hasExpired(expires, now)
          ? html`<${StatusDot} tone="bad" label=${`expired ${expires}`} />`
          : (expires ?? 'never'),
    },
    {
      title: 'Change',
      cell: (listed) => listed.source === 'http' && html`<div class="row">${buttonsOf(listed)}</div>`,
    },
  ];
  const buttonsOf = (listed: ShownKey) =>
    acts
      .filter(({ act }) => isAdmin || act !== 'change')
      .map(
        ({ act, word, style }) =>
          html`<button type="button" class="button small ${style}" aria-label=${`${word} ${listed.name}`} onClick=${() => onAsk({ act, listed })}>${word}</button>`,
      );
  return html`<${Table} caption="Keys" isStacked columns=${columns} rows=${keys} keyOf=${({ name }: ShownKey) => name} />`;
}

const acts = [
  { act: 'change', word: 'Change', style: '' },
  { act: 'replace', word: 'Replace', style: '' },
  { act: 'delete', word: 'Delete', style: 'danger' },
] as const;

/** Whether the service refuses the key: it does so from the day on, which begins in UTC. */
function hasExpired(expires: string | null, now: number): boolean {
  return expires !== null && Date.parse(expires) <= now;
}

/** Returns the limits of a key in words. */
export function limitsText({ rate, concurrent, queue, weight, models, tokens, cost, group }: ShownKey): string {
  const [requests = '', seconds = ''] = rate?.split('/') ?? [];
  const [maxTokens = '', tokenPeriod = ''] = tokens?.split('/') ?? [];
  const [dollars = '', costPeriod = ''] = cost?.split('/') ?? [];
  const texts = [
    rate && `${plural(Number(requests), 'request')} in ${seconds} s`,
    concurrent && `${plural(concurrent, 'job')} at once`,
    queue && `${plural(queue, 'place')} in the queue`,
    weight && `weight ${weight}`,
    models && `only ${models.join(', ')}`,
    tokens && `${plural(Number(maxTokens), 'token')} a ${tokenPeriod}`,
    cost && `$${dollars} a ${costPeriod}`,
    group && `group ${group}`,
  ];
  return texts.filter(Boolean).join(' · ') || 'those of the service';
}

interface ConfirmationProps {
  readonly question: Question;
  /** Called after the change, with the new key if there is one. */
  readonly onDone: (key: FreshKey | null) => void;
  readonly onClose: () => void;
}

/** Asks before a key stops working. */
function Confirmation({ question: { act, listed }, onDone, onClose }: ConfirmationProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const { name } = listed;
  const path = pathOf(name);
  const change = () => {
    if (act === 'replace') run(api.json<FreshKey>(`${path}/rotate`, { method: 'POST', body: {} }), onDone);
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

function pathOf(name: string): string {
  return `/keys/${encodeURIComponent(name)}`;
}

/** Changes rights, limits and expiry of a key. Its programs continue with the same key. */
function ChangeDialog({ question: { listed }, onDone, onClose }: ConfirmationProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const change = (event: Event) => {
    event.preventDefault();
    const body = optionsIn(new FormData(form.current as HTMLFormElement), listed);
    run(api.json(pathOf(listed.name), { method: 'PATCH', body }), () => onDone(null));
  };
  return html`<${Dialog} title=${`Change the key ${listed.name}`} onClose=${onClose}>
    <form ref=${form} onSubmit=${change}>
      <${RightsFields} isAdmin listed=${listed} />
      ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
      <div class="row end">
        <button type="button" class="button quiet" onClick=${onClose}>Cancel</button>
        <button class="button primary" disabled=${isRunning}>Change</button>
      </div>
    </form>
  <//>`;
}
