import { useParts } from './context.mjs';
import { useValue } from './observable.mjs';
import { html } from './ui/html.mjs';

/** Says that the server does not answer, for as long as it does not. */
export function GoneBanner() {
  const { link } = useParts();
  const isGone = useValue(link.state) === 'gone';
  return html`<div class="gone" role="status">
    ${isGone && html`<p><span class="spinner" />The service does not answer. Trying again until it is back …</p>`}
  </div>`;
}
