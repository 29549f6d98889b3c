import type { PieceOrder } from '../../../src/features/read-back/transcripts.js';
import type { TranscriptItem, TranscriptPart } from '../../../src/shared/ipc/protocol.js';

/** Returns a reader of these parts, with each part as one piece. */
export function onePartAtATime(parts: readonly TranscriptPart[]): (order: PieceOrder) => Promise<TranscriptItem> {
  return async ({ from }) => {
    const at = from?.at ?? 0;
    const next = { message: 0, image: -1, at: at + 1, messageCount: 1 };
    return { parts: parts.slice(at, at + 1), next: at + 1 < parts.length ? next : null };
  };
}
