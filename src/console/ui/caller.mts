import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CallerBody } from '../../shared/api/caller.js';
import { useParts } from '../base/context.mjs';
import { ApiError, sentenceOf } from '../base/failures.mjs';
import { useValue } from '../base/observable.mjs';
import { Dialog, Field } from './controls.mjs';

/** No row of the usage is this late, so the response contains little more than the caller. */
const whoPath = '/usage?since=9999-12-31';

/** Who this tab is to the service: `none` if the service needs a key first, `unknown` if it did not say. */
type TabCaller = CallerBody | 'none' | 'unknown';

/** Returns the caller; null until the service has answered, and if the caller is not needed. */
export function useCaller(isNeeded = true): TabCaller | null {
  const { api, keys, link } = useParts();
  const [caller, setCaller] = useState<TabCaller | null>(null);
  const isUp = useValue(link.state) === 'up';
  const isAsking = useValue(keys.question) !== 'none';
  useEffect(() => {
    if (!isNeeded || !isUp || isAsking) return;
    const abort = new AbortController();
    api.json<{ readonly caller: CallerBody }>(whoPath, { asksForKey: false, signal: abort.signal }).then(
      (report) => setCaller(report.caller),
      (error: unknown) => {
        if (!abort.signal.aborted) setCaller(error instanceof ApiError && error.status === 401 ? 'none' : 'unknown');
      },
    );
    return () => abort.abort();
  }, [api, isNeeded, isUp, isAsking]);
  return caller;
}

const kinds: Readonly<Record<CallerBody['kind'], string>> = {
  key: 'API key',
  made: 'API key, made here',
  user: 'User of this host',
  sso: 'Person, signed on by the proxy',
  address: 'Address',
  other: 'Client',
};

/**
 * Whether the caller surely may manage no keys: an administrator may, and a person who is signed on perhaps. Callers
 * without scopes use the service without a key.
 */
export function hasNoKeys(caller: TabCaller | null): boolean {
  const known = knownIn(caller);
  return known !== null && known.kind !== 'sso' && !known.scopes?.includes('admin');
}

/** Whether the caller may set the rights of keys, if the service has keys. */
export function isAdministrator(caller: TabCaller | null): boolean {
  const known = knownIn(caller);
  return known !== null && (known.scopes?.includes('admin') ?? true);
}

function knownIn(caller: TabCaller | null): CallerBody | null {
  return typeof caller === 'object' ? caller : null;
}

/** Shows who the user is to the service, and lets the user remove a stored key. */
export function Who({ caller }: { readonly caller: TabCaller | null }) {
  const { keys, memory } = useParts();
  const hasKey = useValue(keys.hasKey);
  const forget = () => {
    keys.forget();
    memory.forget();
    location.reload();
  };
  const enter = () => void keys.ask(keys.key).then((isEntered) => isEntered && location.reload());
  if (caller === 'none' && !hasKey)
    return html`<button type="button" class="button quiet small who" onClick=${enter}>Sign in<span class="unseen"> with your API key</span></button>`;
  const known = knownIn(caller);
  if (known === null && !hasKey) return null;
  return html`
    <button type="button" class="button quiet small who" popovertarget="who">
      <span class="unseen">You: </span><span class="cut">${known?.client ?? 'Your key'}</span><span aria-hidden="true">▾</span>
    </button>
    <div id="who" class="card" popover="auto">
      ${known !== null && html`<p><small class="muted">${kinds[known.kind]}</small><br /><strong>${known.client}</strong></p>`}
      ${known !== null && html`<p><small class="muted">Scopes</small><br />${known.scopes?.join(', ') ?? 'none: the service needs no key'}</p>`}
      ${hasKey && html`<p class="muted"><small>This browser tab stores the key until you close it.</small></p>`}
      ${hasKey && html`<button type="button" class="button" onClick=${forget}>Forget the key</button>`}
    </div>
  `;
}

/** Asks for the API key after a request without a valid one was refused. */
export function KeyDialog() {
  const { keys, clock } = useParts();
  const question = useValue(keys.question);
  const input = useRef<HTMLInputElement>(null);
  if (question === 'none') return null;
  const enter = (event: Event) => {
    event.preventDefault();
    const key = input.current?.value.trim() ?? '';
    if (key !== '') keys.enter(key);
  };
  const { refusal } = keys;
  const isUnknown = refusal === null || refusal === 'the API key is not valid';
  const reason = isUnknown ? 'The service rejected this key.' : sentenceOf({ message: refusal }, clock.now());
  const error = question === 'again' ? reason : undefined;
  return html`<${Dialog} title="API key" onClose=${() => keys.dismiss()}>
    <p>This service requires an API key. Ask its operator for one.</p>
    <form onSubmit=${enter}>
      <${Field} label="Your key" hint="This browser tab stores it until you close it." error=${error}>
        <input ref=${input} type="password" autofocus autocomplete="off" spellcheck=${false} required />
      <//>
      <div class="row end">
        <button type="button" class="button quiet" onClick=${() => keys.dismiss()}>Not now</button>
        <button class="button primary">Continue</button>
      </div>
    </form>
  <//>`;
}
