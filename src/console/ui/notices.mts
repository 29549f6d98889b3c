import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useParts } from '../base/context.mjs';
import { ApiError, isBudget, mayPass, sentenceOf, titleOf, withoutVariables } from '../base/failures.mjs';
import { isAdministrator, useCaller } from './caller.mjs';

export type Tone = 'good' | 'warn' | 'bad' | 'idle';

/** Shows a state as a colour and a word: not everyone can distinguish the colours. */
export function StatusDot({ tone, label }: { readonly tone: Tone; readonly label: string }) {
  return html`<span class="status ${tone}"><span class="dot" aria-hidden="true" />${label}</span>`;
}

/** Replaces an empty page, and explains how to fill it. */
export function EmptyState({ title, level = 'h2', children }: EmptyStateProps) {
  return html`<div class="empty"><${level}>${title}<//>${children}</div>`;
}

interface EmptyStateProps {
  readonly title: string;
  /** Heading of the title. */
  readonly level?: 'h1' | 'h2';
  readonly children?: ComponentChildren;
}

interface ErrorNoticeProps {
  readonly error: Error;
  /** Whether a part of the answer is shown above. */
  readonly hasText?: boolean;
  /** Names the files of the message, which the service names by their numbers. */
  readonly naming?: (message: string) => string;
  /** Called by the retry button. The button is shown if another attempt can succeed. */
  readonly onRetry?: () => void;
}

/** Returns a function that removes the names of variables from a text. For an administrator, it removes nothing. */
function useNaming(texts: readonly string[]): (text: string) => string {
  const caller = useCaller(texts.some((text) => withoutVariables(text) !== text));
  return isAdministrator(caller) ? (text) => text : withoutVariables;
}

/** Shows an error, with the ID of the request in the log. */
export function ErrorNotice({ error, hasText = false, naming = (message) => message, onRetry }: ErrorNoticeProps) {
  const { clock } = useParts();
  const body = error instanceof ApiError ? error.body : null;
  const details = body?.details ?? [];
  const wait = isBudget(error) ? undefined : body?.retry_after_seconds;
  const message = naming(error.message);
  const title = message === error.message ? titleOf(error, hasText) : 'This file cannot be used';
  const sentence = sentenceOf({ message }, clock.now());
  const named = useNaming([sentence, ...details.map(({ message }) => message)]);
  return html`<div class="notice bad" role="alert">
    <strong>${title}</strong>
    <p>${named(sentence)}${wait !== undefined && ` It may work in ${wait} s.`}</p>
    ${details.length > 1 && html`<ul>${details.map(({ path, message }) => html`<li><code>${path}</code> ${named(message)}</li>`)}</ul>`}
    <div class="row">
      ${onRetry && (mayPass(error) || body === null) && html`<button class="button" onClick=${onRetry}>Retry</button>`}
      ${body && html`<small class="muted">Request <code>${body.request_id}</code></small>`}
    </div>
  </div>`;
}
