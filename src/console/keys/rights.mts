import { html } from 'htm/preact';
import { Field } from '../ui/controls.mjs';
import type { ShownKey } from './shown-key.mjs';

/** Rights of a key that the page can set, with their meaning. */
const scopes = [
  ['ask', 'single questions'],
  ['chat', 'conversations'],
  ['admin', 'manage the service'],
  ['metrics', 'read the metrics'],
] as const;

/** Limits in the spelling of the keys file. The service checks them. */
const limits = [
  { name: 'group', label: 'Group', hint: 'Optional: shares the budget of this group.' },
  { name: 'tokens', label: 'Budget of tokens', hint: 'Optional, such as 1000000/day; day, week or month.' },
  { name: 'cost', label: 'Budget in US dollars', hint: 'Optional, such as 5/day; day, week or month.' },
  { name: 'rate', label: 'Rate', hint: 'Optional: requests in a window of seconds, such as 60/60.' },
] as const;

interface RightsFieldsProps {
  /** Whether the user may set more than the expiry. */
  readonly isAdmin: boolean;
  /** Key to change. Without it, the fields are empty. */
  readonly listed?: ShownKey;
}

/** Shows the fields for rights, limits and expiry of a key. */
export function RightsFields({ isAdmin, listed }: RightsFieldsProps) {
  const chosen = listed?.scopes ?? ['ask', 'chat'];
  return html`
    ${
      isAdmin &&
      html`<fieldset class="field">
        <legend>Scopes</legend>
        ${scopes.map(([scope, meaning]) => html`<label><input type="checkbox" name="scopes" value=${scope} defaultChecked=${chosen.some((one) => one === scope)} /> ${scope} <small class="muted">${meaning}</small></label>`)}
      </fieldset>
      ${limits.map(({ name, label, hint }) => html`<${Field} label=${label} hint=${hint}><input name=${name} maxlength="100" autocomplete="off" spellcheck=${false} defaultValue=${listed?.[name] ?? ''} /><//>`)}`
    }
    <${Field} label="Expires" hint="Optional: the service refuses the key from this day on.">
      <input name="expires" type="date" defaultValue=${listed?.expires ?? ''} />
    <//>
  `;
}

/**
 * Returns the options of a form in the shape of a request: those that the form has, without empty ones. For a key to
 * change, only those that the user has changed; null removes an option.
 */
export function optionsIn(entered: FormData, listed?: ShownKey): Readonly<Record<string, unknown>> {
  const names = [...limits.map(({ name }) => name), 'expires'] as const;
  const texts = names.flatMap((name): [string, string | null][] => {
    const text = entered.get(name);
    if (typeof text !== 'string') return [];
    const value = text.trim() || null;
    return value === (listed?.[name] ?? null) ? [] : [[name, value]];
  });
  const chosen = entered.getAll('scopes').map(String);
  const isSame = listed !== undefined && chosen.toSorted().join() === listed.scopes.toSorted().join();
  return { ...Object.fromEntries(texts), ...(entered.has('group') && !isSame && { scopes: chosen }) };
}
