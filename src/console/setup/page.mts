import { html } from 'htm/preact';
import type { AccountList } from '../../shared/api/accounts.js';
import type { SetupReport } from '../../shared/api/setup.js';
import { useLoad, useParts } from '../base/context.mjs';
import { ApiError, sentenceOf } from '../base/failures.mjs';
import { countText, durationText, plural, shellWord } from '../base/format.mjs';
import type { PageProps } from '../base/router.mjs';
import { CodeBlock } from '../ui/controls.mjs';
import { ErrorNotice, StatusDot } from '../ui/notices.mjs';
import { AccountCards } from './accounts.mjs';
import { documentAddress, Fact, FactCard } from './documents.mjs';

/** Shows the configuration of the service, like `prompt-relay check`. */
export function SetupPage(_: PageProps) {
  const [setup, reload] = useLoad<SetupReport>('/setup');
  const [list, reloadList] = useLoad<AccountList>('/accounts');
  // The page shows both at the same time: a later part would move the earlier one.
  const isRead = setup.state !== 'loading' && list.state !== 'loading';
  const accounts = list.state === 'ready' ? list.value.accounts : [];
  return html`
    <h1>Set-up</h1>
    ${!isRead && html`<p class="muted row"><span class="spinner" />Reading the set-up</p>`}
    ${isRead && setup.state === 'failed' && !isForbidden(setup.error) && html`<${ErrorNotice} error=${setup.error} onRetry=${reload} />`}
    ${isRead && setup.state === 'failed' && isRefused(setup.error) && html`<${PersonBoard} error=${setup.error} accounts=${accounts} />`}
    ${isRead && setup.state === 'ready' && list.state === 'failed' && html`<${ErrorNotice} error=${list.error} onRetry=${reloadList} />`}
    ${isRead && setup.state === 'ready' && html`<${SetupBoard} setup=${setup.value} accounts=${accounts} />`}
  `;
}

interface AccountsProps {
  readonly accounts: AccountList['accounts'];
}

/** Shows the set-up report, with the warnings of the last start at the top. */
function SetupBoard({ setup, accounts }: SetupProps & AccountsProps) {
  const { warnings } = setup;
  return html`
    ${
      warnings.length > 0 &&
      html`<section class="notice warn" aria-labelledby="setup-warnings">
        <h2 id="setup-warnings">${warnings.length === 1 ? 'One warning' : `${warnings.length} warnings`} at start</h2>
        <ul>${warnings.map((warning) => html`<li>${warning}</li>`)}</ul>
      </section>`
    }
    <div class="sections">
      <${Addresses} setup=${setup} />
      <${Access} setup=${setup} />
      <${Limits} setup=${setup} />
      ${setup.model_clis?.map((cli) => html`<${ModelCliSection} cli=${cli} name=${cli.cli} />`) ?? html`<${ModelCliSection} cli=${setup.model_cli} />`}
      <${Models} models=${setup.models} />
      <${FactCard} title="Processes and storage">
        <${Fact} name="Process isolation" page="systemd#cgroups">${terminationText(setup.termination)}<//>
        <${Fact} name="Conversations" page="stores">${storeText(setup.store)}<//>
      <//>
      <${AccountCards} accounts=${accounts} />
      <${Clients} setup=${setup} canSet />
    </div>
  `;
}

/** Whether the user may not read the set-up, which is for operators. Own accounts are shown anyway. */
function isRefused(error: Error): boolean {
  return isForbidden(error) || (error instanceof ApiError && error.status === 401);
}

/** Whether the user is known, but is no operator. */
function isForbidden(error: Error): boolean {
  return error instanceof ApiError && error.status === 403;
}

/** Shows what concerns a user who may not read the set-up: own accounts, and instructions for clients. */
function PersonBoard({ error, accounts }: AccountsProps & { readonly error: Error }) {
  const { clock } = useParts();
  return html`
    ${isForbidden(error) && html`<p class="muted">The configuration of the service is for operators. ${sentenceOf(error, clock.now())}</p>`}
    <div class="sections">
      <${AccountCards} accounts=${accounts} />
      <${Clients} setup=${{ needs_key: true, ollama_url: null }} />
    </div>
  `;
}

interface SetupProps {
  readonly setup: SetupReport;
}

function Addresses({ setup: { url, socket } }: SetupProps) {
  return html`<${FactCard} title="Addresses">
    <${Fact} name="TCP" page="clients#remote-access"><code>${url}</code><//>
    <${Fact} name="Unix socket" page="clients#local-users">${socket === null ? 'none' : html`<code>${socket}</code>`}<//>
  <//>`;
}

function Access({ setup }: SetupProps) {
  const { keys, needs_key: needsKey, local_users: mode, allowed_users: allowed } = setup;
  return html`<${FactCard} title="Access">
    <${Fact} name="API keys" page="clients#keys">${accessText(setup)}<//>
    ${keys.length > 0 && html`<${Fact} name="Key names" page="clients#keys">${listOf(keys)}<//>`}
    ${!needsKey && html`<${Fact} name="Local users" page="clients#local-users">${allowed.length > 0 ? html`only ${listOf(allowed)}` : localUsersText(mode)}<//>`}
    ${setup.files?.map(
      (file) => html`<${Fact} key=${file.name} name=${fileNames[file.name]} page="operations#promptrelayfilefaults">
      <${StatusDot} tone=${file.faults === 0 ? 'good' : 'bad'} label=${faultsText(file)} />
    <//>`,
    )}
  <//>`;
}

type FileState = NonNullable<SetupReport['files']>[number];

const fileNames: Readonly<Record<FileState['name'], string>> = {
  keys_file: 'Keys file',
  made_keys: 'Keys made over HTTP',
  accounts_file: 'Accounts file',
};

/** Describes the faults of a file that the service reads again when it changes. */
export function faultsText({ faults }: Pick<FileState, 'faults'>): string {
  return faults === 0 ? 'no faults' : `${plural(faults, 'fault')}: refused, and named in the log`;
}

function listOf(words: readonly string[]) {
  return html`<ul class="words">${words.map((word) => html`<li>${word}</li>`)}</ul>`;
}

function Limits({ setup }: SetupProps) {
  return html`<${FactCard} title="Limits">
    <${Fact} name="Workers" page="operations#sizing">${countText(setup.workers)}<//>
    <${Fact} name="Concurrent jobs" page="operations#sizing">${countText(setup.max_concurrent)}<//>
    <${Fact} name="Time limit" page="configuration#variables">up to ${durationText(setup.execution_timeout_ms)}<//>
    <${Fact} name="Queue size" page="configuration#variables">${countText(setup.max_queue)}<//>
    <${Fact} name="Queue time limit" page="configuration#variables">up to ${durationText(setup.queue_timeout_ms)}<//>
  <//>`;
}

interface ModelCliProps {
  readonly cli: SetupReport['model_cli'];
  /** Name of the CLI, if there are several. */
  readonly name?: string;
}

function ModelCliSection({ cli, name }: ModelCliProps) {
  const { adapter, command, version, ready, duration_ms: ms, error } = cli;
  return html`<${FactCard} title=${name === undefined ? 'Model CLI' : `Model CLI ${name}`}>
    <${Fact} name="Ready" page="operations#health">
      <${StatusDot} tone=${ready ? 'good' : 'bad'} label=${ready ? `yes, checked in ${durationText(ms)}` : 'no'} />
      ${error !== null && html`<p class="fault">${error}</p>`}
    <//>
    <${Fact} name="Adapter" page="clis">
      ${[adapter, version].filter(Boolean).join(' ')}
      ${adapter === 'demo' && html`<p>A small program that comes with the service, not a language model.</p>`}
    <//>
    <${Fact} name="Command" page="clis"><code>${command.map(shellWord).join(' ')}</code><//>
  <//>`;
}

function Models({ models }: { readonly models: SetupReport['models'] }) {
  const defaultModel = models.find((model) => model.default);
  return html`<${FactCard} title="Models">
    <${Fact} name="Default" page="clis#names-of-models">${defaultModel?.id ?? 'not known'}<//>
    <${Fact} name="Available models" page="clis#names-of-models">${models.length === 0 ? 'none known' : listOf(models.map(({ id }) => id))}<//>
  <//>`;
}

/** Describes whether requests need a key, and whether any key exists. */
export function accessText({ keys, needs_key: needsKey }: Pick<SetupReport, 'keys' | 'needs_key'>): string {
  if (!needsKey) return 'none: requests need no key';
  if (keys.length === 0) return 'none in the keys file: every request is refused';
  return keys.length === 1 ? 'one key; every request needs it' : `${keys.length} keys; every request needs one`;
}

const modes: ReadonlyMap<string, string> = new Map([
  ['off', 'not identified'],
  ['identify', 'identified by user name'],
  ['require', 'identified by user name; others are refused'],
]);

/** Describes how the service identifies local callers without a key. */
function localUsersText(mode: string): string {
  return modes.get(mode) ?? mode;
}

function storeText({ kind, place }: SetupReport['store']): string {
  return place === null ? `in ${kind}: lost at a restart` : `in ${kind}: ${place}`;
}

export function terminationText({ means, no_cgroup: reason }: SetupReport['termination']): string {
  if (means === 'cgroup') return 'a cgroup for each job';
  return `one group of processes for each job${reason === null ? '' : `; cgroups are unavailable: ${reason}`}`;
}

/** Returns the command that adds this service's MCP server to Claude Code, as a tool. */
export function mcpCommand(url: string, needsKey: boolean): string {
  const key = needsKey ? ' --header "Authorization: Bearer $MODEL_API_KEY"' : '';
  return `claude mcp add --transport http relay ${shellWord(url)}${key}`;
}

interface ClientsProps {
  /** `ollama_url`: null or missing if programs for Ollama have no separate port. */
  readonly setup: Pick<SetupReport, 'needs_key'> & { readonly ollama_url?: string | null };
  /** Whether the user can set variables of the service. */
  readonly canSet?: boolean;
}

function Clients(props: ClientsProps) {
  return html`<${McpClients} ...${props} /><${OllamaClients} ...${props} />`;
}

function McpClients({ setup: { needs_key: needsKey } }: ClientsProps) {
  return html`<section class="card" aria-label="Use from other programs (MCP)">
    <h2>Use from other programs (MCP)</h2>
    <p class="muted">For Claude Code. Other clients of the Model Context Protocol need the address alone: <a href=${documentAddress('sdks#mcp')}>settings</a>.</p>
    <${CodeBlock} code=${mcpCommand(new URL('../mcp', location.href).href, needsKey)} language="sh" />
  </section>`;
}

/** Returns the shell command that sets the variable read by most clients of Ollama. */
export function ollamaVariable(url: string): string {
  return `export OLLAMA_HOST=${shellWord(url.replace(/\/+$/, ''))}`;
}

function OllamaClients({ setup: { needs_key: needsKey, ollama_url: ownPort }, canSet = false }: ClientsProps) {
  return html`<section class="card" aria-label="Use from programs for Ollama">
    <h2>Use from programs for Ollama</h2>
    <p class="muted">Most of these programs read this variable; others have a setting for the address.${needsKey ? ' Each has to send an API key as its bearer token.' : ''} <a href=${documentAddress('sdks#clients-of-ollama')}>Tested programs</a></p>
    <${CodeBlock} code=${ollamaVariable(ownPort ?? new URL('..', location.href).href)} language="sh" label="The address for programs" />
    ${ownPort == null && canSet && html`<p class="muted">If a program requires Ollama’s port, set <code>MODEL_API_OLLAMA_PORT=11434</code>.</p>`}
  </section>`;
}
