import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { UsageReport } from '../../shared/api/usage.js';
import { useParts } from '../base/context.mjs';
import { ApiError, mayPass, sentenceOf, titleOf, withoutVariables } from '../base/failures.mjs';

export type Tone = 'good' | 'warn' | 'bad' | 'idle';

/** A state as a colour and a word: not everyone can tell the colours apart. */
export function StatusDot({ tone, label }: { readonly tone: Tone; readonly label: string }) {
  return html`<span class="status ${tone}"><span class="dot" aria-hidden="true" />${label}</span>`;
}

/** Shown instead of an empty page. It says how to fill it. */
export function EmptyState({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

interface ErrorNoticeProps {
  readonly error: Error;
  /** Offered if another try can succeed. */
  readonly onRetry?: () => void;
}

/** The message of an error. It names variables only to a caller with the scope `admin`. */
function useSentence(error: Error): string {
  const { api } = useParts();
  const [isAdmin, setAdmin] = useState(false);
  const whole = sentenceOf(error);
  const bare = withoutVariables(whole);
  useEffect(() => {
    if (bare === whole) return;
    api.json<UsageReport>('/usage', { asksForKey: false }).then(
      ({ caller }) => setAdmin(caller !== undefined && (caller.scopes?.includes('admin') ?? true)),
      () => {}, // the names stay hidden
    );
  }, [api, whole]);
  return isAdmin ? whole : bare;
}

/** An error in sentences, with the ID of the request in the log. */
export function ErrorNotice({ error, onRetry }: ErrorNoticeProps) {
  const body = error instanceof ApiError ? error.body : null;
  const details = body?.details ?? [];
  const wait = body?.retry_after_seconds;
  const sentence = useSentence(error);
  return html`<div class="notice bad" role="alert">
    <strong>${titleOf(error)}</strong>
    <p>${sentence}${wait !== undefined && ` It may work in ${wait} s.`}</p>
    ${details.length > 1 && html`<ul>${details.map(({ path, message }) => html`<li><code>${path}</code> ${withoutVariables(message)}</li>`)}</ul>`}
    <div class="row">
      ${onRetry && (mayPass(error) || body === null) && html`<button class="button" onClick=${onRetry}>Try again</button>`}
      ${body && html`<small class="muted">Request <code>${body.request_id}</code></small>`}
    </div>
  </div>`;
}
