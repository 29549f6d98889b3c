import type { AttachedImage, ChosenEffort, UserMessage } from './asked.mjs';
import { readSchema } from './schema.mjs';

/** What stands in the fields: the next message, not sent yet. */
export interface Draft {
  readonly text: string;
  readonly images: readonly AttachedImage[];
  readonly system: string;
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
  /** As it was pasted. */
  readonly schemaText: string;
}

export const emptyDraft: Draft = { text: '', images: [], system: '', model: null, effort: null, schemaText: '' };

/** null where something is missing or wrong. */
export function messageOf({ schemaText, ...rest }: Draft): UserMessage | null {
  const schema = readSchema(schemaText);
  if (rest.text.trim() === '' || schema.kind === 'fault') return null;
  return { ...rest, schema: schema.kind === 'schema' ? schema.value : null };
}
