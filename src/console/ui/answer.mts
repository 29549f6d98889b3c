import { html } from 'htm/preact';
import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useParts } from '../base/context.mjs';
import { CodeBlock } from './controls.mjs';

type MarkdownView = FunctionComponent<{ readonly text: string; readonly isWhole: boolean }>;

/** Draws Markdown. Its code is large: the browser loads it when there is something to draw. null: not loaded. */
export function useMarkdown(isNeeded: boolean): MarkdownView | null {
  const { link } = useParts();
  const [view, setView] = useState<MarkdownView | null>(null);
  useEffect(() => {
    if (!isNeeded || view !== null) return;
    import('./markdown.mjs').then(
      ({ Markdown }) => setView(() => Markdown),
      () => link.lost(),
    );
  }, [isNeeded, view, link]);
  return view;
}

interface AnswerTextProps {
  readonly text: string;
  /** Whether the text is complete. */
  readonly isWhole: boolean;
  readonly markdown: MarkdownView | null;
}

/** The text of an answer, drawn as Markdown once its code is loaded. */
export function AnswerText({ text, isWhole, markdown }: AnswerTextProps) {
  return markdown === null
    ? html`<p class="source">${text}</p>`
    : html`<${markdown} text=${text} isWhole=${isWhole} />`;
}

/** An answer that fits a JSON Schema. */
export function AnswerValue({ value }: { readonly value: unknown }) {
  return html`<${CodeBlock} code=${JSON.stringify(value, null, 2)} language="json" />`;
}

/** The system text of a conversation, if it has one. */
export function SystemText({ system }: { readonly system: string | null }) {
  if (system === null) return null;
  return html`<details class="system"><summary>System text</summary><p class="source">${system}</p></details>`;
}
