import { html } from 'htm/preact';
import { useAction, useLoad, useParts } from '../base/context.mjs';
import type { PageProps } from '../base/router.mjs';
import { saveFile } from '../base/save-file.mjs';
import { ErrorNotice } from '../ui/notices.mjs';

/** Kind of data in the answer of the service. */
interface ShownData {
  readonly kind: string;
  readonly content: string;
  readonly place: string;
  readonly kept: string;
  readonly readers: readonly string[];
}

interface DataReport {
  readonly is_stored: boolean;
  readonly data: readonly ShownData[];
  readonly provider: string;
}

/** Shows what the service stores, how long, and who can read it, and saves everything that it has of the user. */
export function DataPage(_: PageProps) {
  const [retention, reload] = useLoad<DataReport>('/retention');
  return html`
    <h1>Your data</h1>
    ${retention.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading what is stored</p>`}
    ${retention.state === 'failed' && html`<${ErrorNotice} error=${retention.error} onRetry=${reload} />`}
    ${retention.state === 'ready' && html`<${DataBoard} retention=${retention.value} />`}
  `;
}

function DataBoard({ retention }: { readonly retention: DataReport }) {
  const { data, is_stored: isStored, provider } = retention;
  const stored = data.filter(({ place }) => place !== 'nowhere');
  return html`
    ${!isStored && html`<p class="notice">Nothing of your prompts and answers is stored: the operator has set <code>store=off</code> for you.</p>`}
    <${ExportButton} />
    <div class="sections">${stored.map((entry) => html`<${DataCard} entry=${entry} />`)}</div>
    <p class="muted">${provider}</p>
  `;
}

function ExportButton() {
  const { api, clock } = useParts();
  const { run, isRunning, failure } = useAction();
  const save = () => run(api.text('/export'), (text) => saveFile('my-data.jsonl', 'application/x-ndjson', text, clock));
  return html`
    <p><button type="button" class="button" disabled=${isRunning} onClick=${save}>${isRunning ? 'Exporting …' : 'Export my data'}</button></p>
    ${failure !== null && html`<${ErrorNotice} error=${failure} onRetry=${save} />`}
  `;
}

/** Words for those who can read a kind of data. */
const readers: Readonly<Record<string, string>> = {
  client: 'you',
  admin: 'administrators',
  everybody: 'everybody',
  host: 'root and the service on its host',
  scraper: 'who may read the metrics',
  receiver: 'the receiver that the operator has set',
};

function DataCard({ entry }: { readonly entry: ShownData }) {
  const rows = [
    ['What', entry.content],
    ['Where', entry.place],
    ['How long', entry.kept],
    ['Who reads it', entry.readers.map((reader) => readers[reader] ?? reader).join(', ')],
  ];
  return html`<section class="card" aria-label=${entry.kind}>
    <h2>${entry.kind.charAt(0).toUpperCase()}${entry.kind.slice(1)}</h2>
    <dl class="facts">${rows.map(([name, text]) => html`<div><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
  </section>`;
}
