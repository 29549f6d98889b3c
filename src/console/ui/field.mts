import { cloneElement, type VNode } from 'preact';
import { useId } from 'preact/hooks';
import { html } from './html.mjs';

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string;
  /** One input, select or textarea. */
  readonly children: VNode<object>;
}

/** A control with its label, a hint and what is wrong with it, joined for screen readers. */
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
