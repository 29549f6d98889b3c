import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { html } from './html.mjs';
import { Icon } from './icon.mjs';

interface DialogProps {
  readonly title: string;
  readonly isWide?: boolean;
  /** Escape, or the button that closes it. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Stands in front of the page while it is drawn. The browser keeps the focus inside, and gives it back. */
export function Dialog({ title, isWide = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    return () => opened?.close();
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault(); // it is closed by not being drawn
    onClose();
  };
  return html`<dialog ref=${dialog} class=${isWide ? 'wide' : undefined} aria-labelledby=${titleId} onCancel=${cancel}>
    <div class="row between">
      <h2 id=${titleId}>${title}</h2>
      <button type="button" class="button quiet icon" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button>
    </div>
    ${children}
  </dialog>`;
}
