import { html } from './html.mjs';

export type Tone = 'good' | 'warn' | 'bad' | 'idle';

/** A colour that says how it is, with the word beside it: the colour alone says nothing to many. */
export function StatusDot({ tone, label }: { readonly tone: Tone; readonly label: string }) {
  return html`<span class="status ${tone}"><span class="dot" aria-hidden="true" />${label}</span>`;
}
