import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Effort } from '../../shared/job.js';
import { binaryTypeOf } from '../../shared/tables/document-types.js';
import { isObject } from '../../shared/text/json-schema.js';
import { documentOf } from '../../worker/jobs/documents.js';
import type { FileForm, FileForms, Reference } from '../../worker/jobs/file-references.js';
import type { AttachmentFields, RequestedSchema } from '../../worker/jobs/job-request.js';
import type { ShownPart } from '../../worker/jobs/message-parts.js';
import { dataUrlIn, foreignParts, imageOfUrl, joined, textAt, type WithoutText } from '../doors/messages.js';
import { partFieldIn } from '../doors/request-fields.js';
import type { SdkBody } from '../doors/sdk-request.js';

export const streamField = z.boolean('must be true or false').nullish();
export const stringField = z.string('must be a string');

/** Returns how a body is read whose field `user` names the sub-client. */
export function bodyWithUser<T extends { readonly user?: string | null | undefined }>(
  schema: z.ZodType<T>,
  fileForms: FileForms = {},
): SdkBody<T> {
  return { schema, fileForms, userIn: ({ user }) => user, withoutUser: (body) => ({ ...body, user: undefined }) };
}

/** Types of web searches that a request may choose. */
export const searchTypes = [
  'web_search',
  'web_search_2025_08_26',
  'web_search_preview',
  'web_search_preview_2025_03_11',
] as const;

export const jsonSchema = z.record(z.string(), z.unknown(), 'must be a JSON Schema, an object');

/** Requested answer format. `path` and `schemaPath` are request fields, for errors. */
export interface FormatField {
  readonly type: string;
  readonly path: string;
  readonly schema: RequestedSchema['value'] | null | undefined;
  readonly schemaPath: string;
}

/** Returns the requested schema, or undefined for plain text. Throws `validation_error`. */
export function schemaOf({ type, path, schema, schemaPath }: FormatField): RequestedSchema | undefined {
  if (type === 'text' || type === '') return undefined;
  if (type === 'json_object' && schema == null) return { path, value: { type: 'object' } };
  if (type === 'json_object' && schema != null) return { path: schemaPath, value: schema };
  if (type !== 'json_schema') throw invalid(`${path}.type`, 'must be text, json_object or json_schema');
  if (schema == null) throw invalid(schemaPath, 'must be sent');
  return { path: schemaPath, value: schema };
}

const efforts: Readonly<Record<string, Effort>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
};

/** Returns undefined for `none` and for an unknown value. */
export function effortOf(name: string | null | undefined): Effort | undefined {
  return name == null || !Object.hasOwn(efforts, name) ? undefined : efforts[name];
}

/** Part of a message's content. The type decides which other fields it has. */
const part = z.looseObject({ type: z.string('must be a string') });
export type SentPart = z.infer<typeof part>;

export const content = z.union([z.string(), z.array(part)], 'must be text, or a list of parts with a type each');
export type SentContent = z.infer<typeof content>;

/** Names of content parts in one of OpenAI's APIs. */
export interface PartForms {
  /** Field with the text, for each type that is text. */
  readonly texts: Readonly<Record<string, string>>;
  readonly image: { readonly type: string; readonly urlIn: (part: SentPart) => unknown; readonly urlField: string };
  /** `fileIn` returns the object with the file, which is at `path` in the part; undefined if it is missing. */
  readonly file: { readonly type: string; readonly fileIn: (part: SentPart) => unknown; readonly path: string };
}

/** Whether content may have images and files, and how to replace an unknown part that has no text. */
export interface ContentRules {
  readonly mayShow: boolean;
  readonly withoutText: WithoutText;
}

/** Returns the rules for a role. `isLast`: whether no later message is from the user. */
export function rulesOf(role: 'system' | 'user' | 'assistant' | 'tool', isLast = false): ContentRules {
  if (role === 'tool') return { mayShow: true, withoutText: 'a-note' };
  const isQuestion = role === 'system' || (role === 'user' && isLast);
  return { mayShow: role === 'user', withoutText: isQuestion ? 'refused' : 'nothing' };
}

/** Translates the parts of content. Throws `validation_error` that names a refused part. */
export function partsOf(content: SentContent, path: string, forms: PartForms, rules: ContentRules): ShownPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: textAt(content, path) }];
  return content.flatMap((each, index) => {
    const at = `${path}.${index}`;
    const { texts, image, file } = forms;
    const field = Object.hasOwn(texts, each.type) ? texts[each.type] : undefined;
    if (field !== undefined) return { type: 'text', text: textAt(each[field], `${at}.${field}`) };
    if (each.type === image.type && rules.mayShow) return imageIn(each, at, image);
    if (each.type === file.type && rules.mayShow) return fileIn(file.fileIn(each), at + file.path);
    const parts = foreignParts(each, rules.withoutText);
    if (parts !== null) return parts;
    const types = [...Object.keys(texts), ...(rules.mayShow ? [image.type, file.type] : [])];
    throw invalid(`${at}.type`, `must be one of ${types.join(', ')}`);
  });
}

function imageIn(each: SentPart, at: string, { urlIn, urlField }: PartForms['image']): ShownPart {
  const [url, path] = [urlIn(each), `${at}.${each.file_id == null ? urlField : 'file_id'}`];
  if (url == null) throw invalid(path, 'must be sent as a data URL');
  if (typeof url !== 'string') throw invalid(path, 'must be a string');
  return imageOfUrl(url, path);
}

/** Returns the form of references whose file becomes a data URL. `holderIn`: see `PartForms`. */
export function fileForm(
  kind: Pick<FileForm, 'isDocument' | 'path' | 'field'>,
  holderIn: (part: Reference) => unknown = (part) => part,
): FileForm {
  return {
    ...kind,
    referenceIn: (part) => {
      const holder = holderIn(part);
      return isObject(holder) && holder.file_id != null ? holder : null;
    },
    fill: (reference, { name, mediaType, data }) => {
      reference[kind.field] = `data:${mediaType};base64,${data}`;
      if (kind.isDocument) reference.filename ??= name;
    },
  };
}

/** Length of the base64 that shows the type of a file. */
const headLength = 64;

/** Returns a document from its data URL, or from its base64, as older clients send it. Throws `validation_error`. */
function fileIn(file: unknown, at: string): ShownPart {
  if (typeof file !== 'object' || file === null) throw invalid(at, 'must be a file');
  const { file_data: data, filename: name, file_id: id, file_url: url } = file as Readonly<Record<string, unknown>>;
  if (url != null)
    throw invalid(`${at}.file_url`, 'cannot be used: the service does not fetch files, so send file_data or file_id');
  const path = `${at}.${id == null ? 'file_data' : 'file_id'}`;
  if (typeof data !== 'string') throw invalid(path, data == null ? 'must be sent' : 'must be a string');
  const found = dataUrlIn(data);
  if (found === null && data.startsWith('data:')) throw invalid(path, 'must be a data URL with base64');
  const head = Buffer.from(data.slice(0, headLength), 'base64');
  const bare = { mediaType: binaryTypeOf(head) ?? 'text/plain', data };
  const { mediaType, data: base64 } = found ?? bare;
  return { type: 'document', ...documentOf(mediaType, base64, path, name) };
}

/** Returns the fields of the first image and of the first file; null if there is none. */
export function attachmentFieldsOf(
  contents: readonly (readonly [field: string, content: unknown])[],
  { image, file }: PartForms,
): AttachmentFields {
  return { imageField: partFieldIn(contents, image.type), documentField: partFieldIn(contents, file.type) };
}

/** Returns content that may only be text. */
export function textOf(content: SentContent, path: string, forms: PartForms): string {
  const texts = partsOf(content, path, forms, rulesOf('system')).map((each) => (each.type === 'text' ? each.text : ''));
  return joined(texts) ?? '';
}
