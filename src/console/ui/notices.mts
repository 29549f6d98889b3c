import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { ApiError, mayPass, sentenceOf, titleOf } from '../base/failures.mjs';

export type Tone = 'good' | 'warn' | 'bad' | 'idle';

/** A colour that says how it is, with the word beside it: the colour alone says nothing to many. */
export function StatusDot({ tone, label }: { readonly tone: Tone; readonly label: string }) {
  return html`<span class="status ${tone}"><span class="dot" aria-hidden="true" />${label}</span>`;
}

/** Stands where there is nothing to show yet, and says how there would be. */
export function EmptyState({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

interface ErrorNoticeProps {
  readonly error: Error;
  /** Offered where it makes sense to try again. */
  readonly onRetry?: () => void;
}

/** A failure in sentences, with the id that finds it in the log. */
export function ErrorNotice({ error, onRetry }: ErrorNoticeProps) {
  const body = error instanceof ApiError ? error.body : null;
  const details = body?.details ?? [];
  const wait = body?.retry_after_seconds;
  return html`<div class="notice bad" role="alert">
    <strong>${titleOf(error)}</strong>
    <p>${sentenceOf(error)}${wait !== undefined && ` It may work in ${wait} s.`}</p>
    ${details.length > 1 && html`<ul>${details.map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}</ul>`}
    <div class="row">
      ${onRetry && (mayPass(error) || body === null) && html`<button class="button" onClick=${onRetry}>Try again</button>`}
      ${body && html`<small class="muted">Request <code>${body.request_id}</code></small>`}
    </div>
  </div>`;
}
