import type { ModelEntry } from '../../shared/api/models.js';
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

/** What a draft is sent to. */
export interface DraftTarget {
  /** As the service lists it; undefined where it lists none, or not yet. */
  readonly model: Pick<ModelEntry, 'name' | 'capabilities'> | undefined;
  /** The conversation is not on the page yet. */
  readonly isReading: boolean;
}

/** Why a draft can not be sent. `field` is what has to be changed. */
export interface DraftFault {
  readonly field: 'text' | 'schema' | 'images' | 'conversation';
  readonly message: string;
}

export type ReadDraft =
  | { readonly kind: 'message'; readonly message: UserMessage }
  | { readonly kind: 'fault'; readonly fault: DraftFault };

/** The message that a draft is, or what is missing or wrong. An effort that the model does not take is left out. */
export function readDraft({ schemaText, ...rest }: Draft, { model, isReading }: DraftTarget): ReadDraft {
  const schema = readSchema(schemaText);
  if (schema.kind === 'fault') return faultOf('schema', `The JSON Schema can not be used. ${schema.message}`);
  if (rest.images.length > 0 && !takesImages(model))
    return faultOf('images', `${noImages(model)} Remove them, or choose another model.`);
  if (rest.text.trim() === '') return faultOf('text', 'Write a message first.');
  if (isReading) return faultOf('conversation', 'The conversation is still being read.');
  const effort = takesEffort(model) ? rest.effort : null;
  return { kind: 'message', message: { ...rest, effort, schema: schema.kind === 'schema' ? schema.value : null } };
}

/** Where nothing is known, the service decides. */
export function takesImages(model: DraftTarget['model']): boolean {
  return model?.capabilities?.images ?? true;
}

export function takesEffort(model: DraftTarget['model']): boolean {
  return model?.capabilities?.effort ?? true;
}

export function noImages(model: DraftTarget['model']): string {
  return `The model ${model?.name ?? 'of this service'} takes no images.`;
}

function faultOf(field: DraftFault['field'], message: string): ReadDraft {
  return { kind: 'fault', fault: { field, message } };
}
