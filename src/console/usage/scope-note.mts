import type { SetupReport } from '../../shared/api/setup.js';
import { ApiError } from '../failures.mjs';
import { html } from '../ui/html.mjs';
import { type Load, useLoad } from '../use-load.mjs';

/** Whose usage this is. Who may see that of all may see the set-up too. */
export function ScopeNote() {
  const [setup] = useLoad<SetupReport>('/setup');
  return html`<p class="muted">${noteOf(setup)} Days are in UTC.</p>`;
}

function noteOf(setup: Load<SetupReport>): string {
  if (setup.state === 'loading') return '';
  if (setup.state === 'failed') {
    const isForbidden = setup.error instanceof ApiError && setup.error.status === 403;
    return isForbidden ? 'Your own usage only: that of all clients is for keys with the scope admin.' : '';
  }
  return setup.value.needs_key
    ? 'Usage of all clients.'
    : 'Your own usage only: that of all clients is for keys with the scope admin, and no key is configured.';
}
