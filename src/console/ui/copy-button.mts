import { useEffect, useState } from 'preact/hooks';
import { useParts } from '../context.mjs';
import { copyText } from './copy-text.mjs';
import { html } from './html.mjs';

const toldMs = 1500;

/** Copies a text, made when it is pressed, and says so for a moment. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }) {
  const { clock } = useParts();
  const [told, setTold] = useState<string | null>(null);
  useEffect(() => (told === null ? undefined : clock.after(toldMs, () => setTold(null))), [told]);
  const copy = ({ currentTarget }: { currentTarget: HTMLButtonElement }) => {
    copyText(text(), currentTarget).then(
      () => setTold('Copied'),
      () => setTold('Not allowed here'),
    );
  };
  return html`<button type="button" class="button quiet small" onClick=${copy}>
    <span aria-live="polite">${told ?? label}</span>
  </button>`;
}
