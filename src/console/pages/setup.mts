import type { SetupReport } from '../../shared/api/setup.js';
import type { PageProps } from '../pages.mjs';
import { SetupBoard } from '../setup/setup-board.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import { useLoad } from '../use-load.mjs';

/** What the service is set up with, as `prompt-relay check` would say it. */
export function SetupPage(_: PageProps) {
  const [setup, reload] = useLoad<SetupReport>('/setup');
  return html`
    <h1>Set-up</h1>
    ${setup.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading the set-up</p>`}
    ${setup.state === 'failed' && html`<${ErrorNotice} error=${setup.error} onRetry=${reload} />`}
    ${setup.state === 'ready' && html`<${SetupBoard} setup=${setup.value} />`}
  `;
}
