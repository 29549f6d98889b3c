import type { PageProps } from '../pages.mjs';
import { html } from '../ui/html.mjs';

export function AskPage(_: PageProps) {
  return html`<h1 class="unseen">Ask</h1>`;
}
