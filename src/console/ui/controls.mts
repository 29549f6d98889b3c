import { html } from 'htm/preact';
import { type ComponentChildren, cloneElement, type VNode } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useParts } from '../base/context.mjs';
import { useColours } from './colours.mjs';

/** SVG paths of the icons, for a view box of 16 by 16. */
const paths = {
  options: 'M2 5h7M13 5h1M2 11h1M7 11h7M11 3v4M5 9v4',
  page: 'M4 2h5.5L12.5 5v9H4zM9.5 2v3h3M6 8h4.5M6 10.5h4.5',
  code: 'M5 4.5 1.5 8 5 11.5M11 4.5 14.5 8 11 11.5M9 3 7 13',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  pencil: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7 11.3 7',
  bin: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.6 9h5.8l.6-9M7 7v4M9 7v4',
  open: 'M8 9.5v-7M5 5l3-3 3 3M2.5 12.5h11',
  save: 'M8 2.5v7M5 7l3 3 3-3M2.5 12.5h11',
  clock: 'M8 2a6 6 0 1 1 0 12A6 6 0 1 1 8 2M8 4.5V8l2.5 1.5',
  down: 'M8 3v10M3.5 8.5 8 13l4.5-4.5',
  send: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
} as const;

export type IconName = keyof typeof paths;

/** Shows an icon. Screen readers skip it and read the word beside it. */
export function Icon({ name }: { readonly name: IconName }) {
  return html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${paths[name]} /></svg>`;
}

/** Copies a text. Rejects if the browser does not allow it. */
async function copyText(text: string, beside: HTMLElement): Promise<void> {
  // If the page comes over plain HTTP from another host, the browser provides no clipboard.
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.className = 'unseen';
  field.value = text;
  beside.after(field); // while a dialog is open, only elements inside it can be selected
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  beside.focus();
  if (!isCopied) throw new Error('the browser copies nothing');
}

const noticeMs = 1500;

/** Button that copies the text that `text` returns, and shows the result for a moment. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }) {
  const { clock } = useParts();
  const [notice, setNotice] = useState<string | null>(null);
  useEffect(() => (notice === null ? undefined : clock.after(noticeMs, () => setNotice(null))), [notice]);
  const copy = ({ currentTarget }: { currentTarget: HTMLButtonElement }) => {
    copyText(text(), currentTarget).then(
      () => setNotice('Copied'),
      () => setNotice('Not allowed here'),
    );
  };
  return html`<button type="button" class="button quiet small" onClick=${copy}>
    <span aria-live="polite">${notice ?? label}</span>
  </button>`;
}

interface CodeBlockProps {
  readonly code: string;
  readonly language?: string | undefined;
  /** Accessible name, different from the names of other code blocks on the page. */
  readonly label?: string;
}

/** Shows code, with a copy button. */
export function CodeBlock({ code, language = '', label = `Code: ${language || 'text'}` }: CodeBlockProps) {
  return html`<div class="code">
    <div class="row between">
      <span>${language || 'text'}</span>
      <${CopyButton} text=${() => code} />
    </div>
    <pre tabindex="0" aria-label=${label} role="group"><code>${useColours(code, language)}</code></pre>
  </div>`;
}

interface FormulaProps {
  /** Source in TeX. */
  readonly text: string;
  /** Source with its delimiters, as in the answer. */
  readonly raw: string;
  /** Whether the formula is a block, not part of a line. */
  readonly isDisplayed: boolean;
}

/** Shows a formula. Shows its source until the renderer is loaded, and if the formula is invalid. */
export function Formula({ text, raw, isDisplayed }: FormulaProps) {
  const place = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const { current: element } = place;
    if (element === null) return;
    let isWanted = true;
    element.textContent = raw;
    addMathStyles();
    import('temml/dist/temml.min.js').then(
      ({ default: temml }) => isWanted && drawMath(temml, element, text, isDisplayed),
      () => {}, // the source stays
    );
    return () => {
      isWanted = false;
    };
  }, [text, raw, isDisplayed]);
  // A displayed formula may be wider than the page: the keyboard can scroll it.
  return isDisplayed
    ? html`<span ref=${place} class="math displayed" tabindex="0" role="group" aria-label="Formula" />`
    : html`<span ref=${place} class="math" />`;
}

/** Adds the style sheet of formulas to the page, with its first formula. */
function addMathStyles(): void {
  const { href } = new URL('../math.css', import.meta.url);
  if (document.querySelector(`link[href="${href}"]`) !== null) return;
  document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href }));
}

type TeX = typeof import('temml/dist/temml.min.js')['default'];

/** Maximum sizes in em and in points: no formula covers the page. */
const maxSize = [20, 300] as const;
const maxExpansions = 500;

/**
 * Replaces the content of the element by MathML if the source is valid. The result cannot link, load or run anything.
 */
function drawMath(temml: TeX, element: HTMLElement, source: string, isDisplayed: boolean): void {
  const drawn = document.createElement('span');
  const limits = { trust: false, strict: false, maxExpand: maxExpansions, maxSize };
  try {
    temml.render(source, drawn, { displayMode: isDisplayed, throwOnError: true, ...limits });
  } catch {
    return;
  }
  for (const operator of drawn.querySelectorAll('mo[stretchy="true"]')) {
    if (/^[←-⇿]$/.test(operator.textContent ?? '')) operator.classList.add('arrow');
  }
  element.replaceChildren(...drawn.childNodes);
}

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string;
  /** One input, select or textarea. */
  readonly children: VNode<object>;
}

/** Shows a control with its label and a hint or an error, linked for screen readers. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const noteId = `${id}-note`;
  const note = error ?? hint;
  const joined = {
    id,
    'aria-invalid': error !== undefined,
    'aria-describedby': note === undefined ? undefined : noteId,
  };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${cloneElement(children, joined)}
    ${note !== undefined && html`<small id=${noteId} class=${error === undefined ? 'muted' : 'fault'}>${note}</small>`}
  </div>`;
}

interface DialogProps {
  readonly title: string;
  readonly isWide?: boolean;
  /** Called on Escape and by the close button. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Dialog that covers the page while it is drawn. The browser keeps the focus inside, and restores it afterwards. */
export function Dialog({ title, isWide = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    // The browser would begin on the cross, which is the first button.
    const controls = ':is(input, textarea, select, button, a):not(:disabled, [hidden])';
    const first = opened?.querySelector<HTMLElement>(`:scope > :not(:first-child) ${controls}`);
    (first ?? opened?.querySelector('h2'))?.focus();
    return () => opened?.close();
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault(); // the caller closes the dialog by not drawing it
    onClose();
  };
  return html`<dialog ref=${dialog} class=${isWide ? 'wide' : undefined} aria-labelledby=${titleId} onCancel=${cancel}>
    <div class="row between">
      <h2 id=${titleId} tabindex="-1">${title}</h2>
      <button type="button" class="button quiet icon" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button>
    </div>
    ${children}
  </dialog>`;
}
