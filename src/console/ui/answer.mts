import { html } from 'htm/preact';
import type { FunctionComponent } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useParts } from '../base/context.mjs';
import { countText } from '../base/format.mjs';
import { CodeBlock } from './controls.mjs';

export interface MarkdownProps {
  readonly text: string;
  readonly isWhole: boolean;
  /** Level of the highest headings, 3 by default. */
  readonly topLevel?: number;
}

type MarkdownView = FunctionComponent<MarkdownProps>;

/**
 * Returns the component that draws Markdown; null until it is loaded. Its code is large, so the browser loads it when
 * it is first needed.
 */
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

/** `isWhole`: whether the text is complete. */
interface DrawnTextProps extends MarkdownProps {
  readonly markdown: MarkdownView | null;
}

interface AnswerTextProps extends DrawnTextProps {
  /** Thoughts that the service has sent apart from the text. */
  readonly thoughts?: string;
  /** Value that is shown instead of the text; undefined for an answer without a JSON Schema. */
  readonly value?: unknown;
}

/**
 * Maximum length that is drawn at once, in UTF-16 units: a megabyte of Markdown would freeze the page for half a
 * minute.
 */
const maxDrawnLength = 50_000;
/** Length of one element of plain text, in UTF-16 units: the browser lays out only the elements in view. */
const pieceLength = 20_000;

/** Separates the thoughts that many models write before their answer; null if the text has no thoughts. */
export function splitThoughts(text: string): { readonly thoughts: string; readonly answer: string } | null {
  const [, thoughts, , answer = ''] = /^\s*<think(?:ing)?>([\s\S]*?)(<\/think(?:ing)?>([\s\S]*)|$)/.exec(text) ?? [];
  return thoughts === undefined ? null : { thoughts: thoughts.trim(), answer: answer.trimStart() };
}

/** Shows the text of an answer below the folded thoughts of the model. */
export function AnswerText({ text, thoughts: sent = '', value, ...rest }: AnswerTextProps) {
  const { thoughts: written, answer } = splitThoughts(text) ?? { thoughts: '', answer: text };
  const thoughts = [sent, written].filter((part) => part.trim() !== '').join('\n\n');
  const isThinking = answer === '' && !rest.isWhole;
  return html`
    ${thoughts !== '' && html`<details class="thoughts"><summary>${isThinking ? 'Thinking …' : 'Thoughts'}</summary><${PlainText} text=${thoughts} /></details>`}
    ${value !== undefined && html`<${AnswerValue} value=${value} />`}
    ${value === undefined && answer !== '' && html`<${DrawnText} text=${answer} ...${rest} />`}
  `;
}

/** Shows text as Markdown once the code for it is loaded. Text beyond the limit stays plain. */
function DrawnText({ text, isWhole, markdown, topLevel }: DrawnTextProps) {
  const cut = text.length > maxDrawnLength ? endOfPiece(text, 0, maxDrawnLength) : text.length;
  const beginning = text.slice(0, cut);
  return html`
    ${
      markdown === null
        ? html`<${PlainText} text=${beginning} />`
        : html`<${markdown} text=${beginning} isWhole=${isWhole || cut < text.length} topLevel=${topLevel} />`
    }
    ${cut < text.length && html`<${Rest} text=${text.slice(cut)} />`}
  `;
}

/** Shows the rest of a long text when the user presses a button. */
function Rest({ text }: { readonly text: string }) {
  const [isShown, setShown] = useState(false);
  if (isShown) return html`<${PlainText} text=${text} />`;
  return html`<p class="row">
    <span class="muted">${countText(text.length)} more characters</span>
    <button type="button" class="button small" onClick=${() => setShown(true)}>Show as plain text</button>
  </p>`;
}

/** Shows a text of any length as written. */
export function PlainText({ text }: { readonly text: string }) {
  const pieces = useMemo(() => piecesOfText(text), [text]);
  return html`<div class="source">${pieces.map((piece, index) => html`<div key=${index} class="piece">${piece}</div>`)}</div>`;
}

/** Splits a text into pieces. Joined, they are the text. */
export function piecesOfText(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = endOfPiece(text, from, pieceLength);
    pieces.push(text.slice(from, end));
    from = end;
  }
  return pieces;
}

/** Returns the end of a piece: after a line break if there is one, and never inside a surrogate pair. */
function endOfPiece(text: string, from: number, length: number): number {
  const last = from + length;
  if (last >= text.length) return text.length;
  const afterLine = text.lastIndexOf('\n', last - 1) + 1;
  if (afterLine > from) return afterLine;
  return /[\ud800-\udbff]/.test(text.charAt(last - 1)) ? last - 1 : last;
}

/** Shows an answer that matches a JSON Schema. */
function AnswerValue({ value }: { readonly value: unknown }) {
  return html`<${CodeBlock} code=${JSON.stringify(value, null, 2)} language="json" />`;
}

/** Shows the system text of a conversation, if it has one. */
export function SystemText({ system }: { readonly system: string | null }) {
  if (system === null) return null;
  return html`<details class="system"><summary>System text</summary><${PlainText} text=${system} /></details>`;
}
