import { useEffect, useState } from 'preact/hooks';
import type { UserMessage } from './asked.mjs';
import type { Draft, DraftFault, ReadDraft } from './draft.mjs';

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
