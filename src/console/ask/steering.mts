import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../base/context.mjs';
import type { Chat } from './chat.mjs';

/** Messages that the user sends while an answer is being written. */
export interface Steering {
  /** Where the last message has arrived; null if none was sent to the present answer. */
  readonly note: string | null;
  readonly failure: Error | null;
  readonly isSending: boolean;
  readonly send: (text: string) => void;
}

/** Place of a message, as the service reports it. */
export type Reached = 'turn' | 'next_turn' | null;

const notes = { turn: 'The model has your message.', next_turn: 'Your message comes next.' } as const;

/** `clear` is called with the message when the service has it. */
export function useSteering(chat: Chat, isBusy: boolean, clear: (sent: string) => void): Steering {
  const [note, setNote] = useState<string | null>(null);
  const { run, isRunning: isSending, failure } = useAction();
  useEffect(() => setNote(null), [isBusy]);
  const send = (text: string) => {
    if (isSending || text.trim() === '') return;
    run(chat.steer(text), (reached) => {
      clear(text);
      setNote(reached && notes[reached]);
    });
  };
  return { note, failure: isBusy ? failure : null, isSending, send };
}
