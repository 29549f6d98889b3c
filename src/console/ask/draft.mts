import { useState } from 'preact/hooks';
import type { ModelEntry } from '../../shared/api/models.js';
import { useLeaving } from '../base/context.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';
import type { AttachedImage, ChosenEffort, UserMessage } from './turn.mjs';

const maxSchemaBytes = 64 * 1024;

/** What a pasted JSON Schema is: nothing where the field is empty, a value to send, or what is wrong with it. */
type PastedSchema =
  | { readonly kind: 'none' }
  | { readonly kind: 'schema'; readonly value: object }
  | { readonly kind: 'fault'; readonly message: string };

export function readSchema(text: string): PastedSchema {
  if (text.trim() === '') return { kind: 'none' };
  if (new TextEncoder().encode(text).length > maxSchemaBytes) return schemaFault('At most 64 KB.');
  const value = parsed(text);
  if (value instanceof Error) return schemaFault(`This is not JSON: ${value.message}`);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return schemaFault('A JSON Schema is an object.');
  const { type, properties, $ref: reference } = value as Readonly<Record<string, unknown>>;
  const isOfObjects = type === 'object' || (type === undefined && (properties ?? reference) !== undefined);
  return isOfObjects ? { kind: 'schema', value } : schemaFault('It needs an object at its root: "type": "object".');
}

function schemaFault(message: string): PastedSchema {
  return { kind: 'fault', message };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}

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
interface DraftTarget {
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

/** The message that is being written. A reload leaves it as it is, but for images that take too much room. */
export function useDraft(memory: TabMemory): [draft: Draft, change: (change: Partial<Draft>) => void] {
  const [draft, setDraft] = useState(() => memory.recall<Draft>('draft-1') ?? emptyDraft);
  useLeaving(() => memory.remember('draft-1', ...(isEmpty(draft) ? [] : [draft, { ...draft, images: [] }])));
  return [draft, (change) => setDraft((before) => ({ ...before, ...change }))];
}

function isEmpty(draft: Draft): boolean {
  return JSON.stringify(draft) === JSON.stringify(emptyDraft);
}
