import { useEffect, useState } from 'preact/hooks';
import type { AcceptedBody } from '../../shared/api/jobs.js';
import type { ModelEntry } from '../../shared/api/models.js';
import { useAction, useLeaving, useParts } from '../base/context.mjs';
import { hrefOf } from '../base/router.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';
import { type AttachedFile, type ChosenEffort, chatBodyOf, isDocument, type UserMessage } from './turn.mjs';

const maxSchemaBytes = 64 * 1024;

/** Result of reading the schema field: `none` if the field is empty, otherwise a schema to send, or a fault. */
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

/** Content of the form: the next message, not sent yet. */
export interface Draft {
  readonly text: string;
  readonly images: readonly AttachedFile[];
  readonly system: string;
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
  /** Text of the schema field, not parsed. */
  readonly schemaText: string;
}

export const emptyDraft: Draft = { text: '', images: [], system: '', model: null, effort: null, schemaText: '' };

/** Model and state of the conversation that a draft is sent to. */
interface DraftTarget {
  /** Model as the service lists it; undefined if it is not listed, or the list is not loaded. */
  readonly model: Pick<ModelEntry, 'name' | 'capabilities'> | undefined;
  /** Whether the conversation is still being loaded. */
  readonly isReading: boolean;
}

/** Reason why a draft cannot be sent. `field` is the field that the user has to change. */
export interface DraftFault {
  readonly field: 'text' | 'schema' | 'images' | 'conversation';
  readonly message: string;
}

export type ReadDraft =
  | { readonly kind: 'message'; readonly message: UserMessage }
  | { readonly kind: 'fault'; readonly fault: DraftFault };

/**
 * Converts a draft to a message, or returns its fault. An effort is left out if the model does not
 * support it.
 */
export function readDraft({ schemaText, ...rest }: Draft, { model, isReading }: DraftTarget): ReadDraft {
  const schema = readSchema(schemaText);
  if (schema.kind === 'fault') return faultOf('schema', `The JSON Schema cannot be used. ${schema.message}`);
  const fault = filesFault(rest.images, model);
  if (fault !== null) return faultOf('images', fault);
  if (rest.text.trim() === '') return faultOf('text', 'Write a message first.');
  if (isReading) return faultOf('conversation', 'The conversation is still loading.');
  const effort = takesEffort(model) ? rest.effort : null;
  return { kind: 'message', message: { ...rest, effort, schema: schema.kind === 'schema' ? schema.value : null } };
}

/** Whether the model takes images. If that is unknown, true: the service decides. */
export function takesImages(model: DraftTarget['model']): boolean {
  return model?.capabilities?.images ?? true;
}

export function takesEffort(model: DraftTarget['model']): boolean {
  return model?.capabilities?.effort ?? true;
}

/** Returns why the model cannot take these files; null if it can, or if that is unknown. */
export function filesFault(files: readonly AttachedFile[], model: DraftTarget['model']): string | null {
  const takesPdfs = model?.capabilities?.pdf ?? true;
  if (!takesImages(model) && !files.every(isDocument))
    return `${noImages(model)} Remove them, or choose another model.`;
  const pdf = files.find(({ mediaType }) => mediaType === 'application/pdf');
  if (takesPdfs || pdf === undefined) return null;
  return `The model ${model?.name} takes no PDFs. Remove “${pdf.name}”, or choose another model.`;
}

export function noImages(model: DraftTarget['model']): string {
  return `The model ${model?.name ?? 'of this service'} takes no images.`;
}

function faultOf(field: DraftFault['field'], message: string): ReadDraft {
  return { kind: 'fault', fault: { field, message } };
}

/** Returns the message that is being written. A reload restores it, without its images if they need too much space. */
/** Change of a draft, or a function of the present draft that returns one. */
type DraftChange = Partial<Draft> | ((draft: Draft) => Partial<Draft>);

export function useDraft(memory: TabMemory): [draft: Draft, change: (change: DraftChange) => void] {
  const [draft, setDraft] = useState(() => memory.recall<Draft>('draft-1') ?? emptyDraft);
  useLeaving(() => memory.remember('draft-1', ...(isEmpty(draft) ? [] : [draft, { ...draft, images: [] }])));
  return [
    draft,
    (change) => setDraft((before) => ({ ...before, ...(typeof change === 'function' ? change(before) : change) })),
  ];
}

function isEmpty(draft: Draft): boolean {
  return JSON.stringify(draft) === JSON.stringify(emptyDraft);
}

type TrySending = (send: (message: UserMessage) => void) => void;

/** Draft that the user tried to send although it has a fault. */
interface Refused {
  readonly draft: Draft;
  readonly field: DraftFault['field'];
}

/**
 * Returns a function that sends a draft without faults, and the fault to show. A fault of the schema or the images is
 * shown at once, any other after an attempt to send; then the field to change gets the focus.
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

/** Function and state for messages that are sent as background jobs. */
export interface BackgroundSending {
  readonly send: (message: UserMessage) => void;
  readonly isSending: boolean;
  readonly failure: Error | null;
}

/**
 * Sends a message as a turn of this conversation, in a background job. Opens the page of the job once it is accepted.
 */
export function useBackground(conversationId: string | null, onSent: () => void): BackgroundSending {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const send = (message: UserMessage) => {
    const body = { ...chatBodyOf(message, conversationId), thoughts: true };
    run(api.json<AcceptedBody>('/chat', { method: 'POST', body, prefer: 'respond-async' }), ({ job_id: id }) => {
      onSent();
      location.hash = hrefOf('jobs', { id });
    });
  };
  return { send, isSending: isRunning, failure };
}
