import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Effort } from '../../shared/job.js';
import type { RequestedSchema } from '../jobs/job-request.js';
import { foreignParts, imageOfUrl, joined, type ShownPart, textAt, type WithoutText } from '../jobs/message-parts.js';

export const streamField = z.boolean('must be true or false').nullish();
export const stringField = z.string('must be a string');

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
  if (type === 'text') return undefined;
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
  xhigh: 'high',
  max: 'high',
};

/** Returns undefined for `none` and for an unknown value. */
export function effortOf(name: string | null | undefined): Effort | undefined {
  return name == null || !Object.hasOwn(efforts, name) ? undefined : efforts[name];
}

/** Part of a message's content. The type decides which other fields it has. */
const part = z.looseObject({ type: z.string('must be a string') });
type SentPart = z.infer<typeof part>;

export const content = z.union([z.string(), z.array(part)], 'must be text, or a list of parts with a type each');
export type SentContent = z.infer<typeof content>;

/** Names of content parts in one of OpenAI's APIs. */
export interface PartForms {
  /** Field with the text, for each type that is text. */
  readonly texts: Readonly<Record<string, string>>;
  readonly image: { readonly type: string; readonly urlIn: (part: SentPart) => unknown; readonly urlField: string };
}

/** Whether content may have images, and how to replace an unknown part that has no text. */
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
    const { texts, image } = forms;
    const field = Object.hasOwn(texts, each.type) ? texts[each.type] : undefined;
    if (field !== undefined) return { type: 'text', text: textAt(each[field], `${at}.${field}`) };
    if (each.type === image.type && rules.mayShow) return imageIn(each, at, image);
    const parts = foreignParts(each, rules.withoutText);
    if (parts !== null) return parts;
    const types = [...Object.keys(texts), ...(rules.mayShow ? [image.type] : [])];
    throw invalid(`${at}.type`, `must be one of ${types.join(', ')}`);
  });
}

function imageIn(each: SentPart, at: string, { urlIn, urlField }: PartForms['image']): ShownPart {
  const [url, path] = [urlIn(each), `${at}.${urlField}`];
  if (url == null) throw invalid(path, 'must be sent as a data URL: the service stores no files');
  if (typeof url !== 'string') throw invalid(path, 'must be a string');
  return imageOfUrl(url, path);
}

/** Returns content that may only be text. */
export function textOf(content: SentContent, path: string, forms: PartForms): string {
  const texts = partsOf(content, path, forms, rulesOf('system')).map((each) => (each.type === 'text' ? each.text : ''));
  return joined(texts) ?? '';
}
