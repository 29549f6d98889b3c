import { useState } from 'preact/hooks';
import type { AcceptedBody } from '../../shared/api/jobs.js';
import { useParts } from '../context.mjs';
import { asError } from '../failures.mjs';
import { hrefOf } from '../router.mjs';
import { chatBodyOf, type UserMessage } from './asked.mjs';

/** How a message is sent whose answer is not waited for. */
export interface BackgroundSending {
  readonly send: (message: UserMessage) => void;
  readonly isSending: boolean;
  readonly failure: Error | null;
}

/** A message as a turn of this conversation. Once it is accepted, its job is shown. */
export function useBackground(conversationId: string | null, onSent: () => void): BackgroundSending {
  const { api } = useParts();
  const [state, setState] = useState<'ready' | 'sending' | { readonly failure: Error }>('ready');
  const send = (message: UserMessage) => {
    const body = chatBodyOf(message, conversationId);
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
  return { send, isSending: state === 'sending', failure: typeof state === 'object' ? state.failure : null };
}
