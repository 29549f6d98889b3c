import type { ComponentChildren } from 'preact';
import { html } from './html.mjs';

/** Stands where there is nothing to show yet, and says how there would be. */
export function EmptyState({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}
