import { CopyButton } from './copy-button.mjs';
import { html } from './html.mjs';

/** Code to read, scroll and copy. */
export function CodeBlock({ code, language = '' }: { readonly code: string; readonly language?: string | undefined }) {
  return html`<div class="code">
    <div class="row between">
      <span>${language || 'text'}</span>
      <${CopyButton} text=${() => code} />
    </div>
    <pre tabindex="0" aria-label=${`Code: ${language || 'text'}`} role="region"><code>${code}</code></pre>
  </div>`;
}
