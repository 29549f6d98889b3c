import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import { attachments } from '../../shared/job.js';
import { turnFigures } from '../../shared/turn-figures.js';

/** Turn that a client has exported, in the call that imports it. */
export const turnToImport = z.object({
  /** Conversation that the turn is added to; null for the first turn of a new one. */
  id: z.string().nullable(),
  client: clientText,
  system: z.string().nullable(),
  text: z.string(),
  images: attachments,
  answer: z.string(),
  figures: turnFigures.nullable(),
});
export type TurnToImport = z.infer<typeof turnToImport>;
