import { useState } from 'preact/hooks';
import type { AcceptedBody } from '../../shared/api/jobs.js';
import { useParts } from '../context.mjs';
import { asError } from '../failures.mjs';
import { hrefOf } from '../router.mjs';
import { chatBodyOf } from './asked.mjs';
import { type Draft, messageOf } from './draft.mjs';

/** How a message is sent whose answer is not waited for. */
export interface BackgroundSending {
  /** null: there is nothing to send. */
  readonly send: (() => void) | null;
  readonly failure: Error | null;
}

/** The message that is being written, as a turn of this conversation. Once it is accepted, its job is shown. */
export function useBackground(draft: Draft, conversationId: string | null, onSent: () => void): BackgroundSending {
  const { api } = useParts();
  const [state, setState] = useState<'ready' | 'sending' | { readonly failure: Error }>('ready');
  const message = messageOf(draft);
  const send = (body: object) => {
    setState('sending');
    api.json<AcceptedBody>('/chat', { method: 'POST', body, prefer: 'respond-async' }).then(
      ({ job_id: id }) => {
        setState('ready');
        onSent();
        location.hash = hrefOf('jobs', { id });
      },
      (error: unknown) => setState({ failure: asError(error) }),
    );
  };
  const isReady = message !== null && state !== 'sending';
  return {
    send: isReady ? () => send(chatBodyOf(message, conversationId)) : null,
    failure: typeof state === 'object' ? state.failure : null,
  };
}
