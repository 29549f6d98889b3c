import { useEffect, useState } from 'preact/hooks';
import type { AcceptedBody } from '../../shared/api/jobs.js';
import { useParts } from '../base/context.mjs';
import { asError } from '../base/failures.mjs';
import { hrefOf } from '../base/router.mjs';
import type { Draft, DraftFault, ReadDraft } from './draft.mjs';
import { chatBodyOf, type UserMessage } from './turn.mjs';

type TrySending = (send: (message: UserMessage) => void) => void;

/** A draft that somebody tried to send, and could not. */
interface Refused {
  readonly draft: Draft;
  readonly field: DraftFault['field'];
}

/**
 * Sends what can be sent, and says why a draft can not be. That nothing is written yet is said only to somebody who tries
 * to send it. What has to be changed gets the focus then.
 */
export function useSending(
  draft: Draft,
  read: ReadDraft,
  openFields: () => void,
): [why: string | null, tryToSend: TrySending] {
  const [refused, setRefused] = useState<Refused | null>(null);
  useEffect(() => {
    if (refused !== null) document.querySelector<HTMLElement>(`[data-field=${refused.field}]`)?.focus();
  }, [refused]);
  const tryToSend: TrySending = (send) => {
    if (read.kind === 'message') return send(read.message);
    const { field } = read.fault;
    if (field === 'schema') openFields();
    setRefused({ draft, field });
  };
  if (read.kind === 'message') return [null, tryToSend];
  const { field, message } = read.fault;
  const isShown = field === 'schema' || field === 'images' || refused?.draft === draft;
  return [isShown ? message : null, tryToSend];
}

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
