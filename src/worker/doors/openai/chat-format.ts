import { invalid } from '../../../shared/errors.js';
import type { OrderedSchema } from '../../jobs/job-order.js';
import { ignoredIn } from '../ignored.js';
import type { ChatCompletionRequest } from './chat-schema.js';
import { schemaOf } from './options.js';

/** The form that the answer is to have: that of `response_format`, else of vLLM's `guided_json`. */
export interface ChatFormat {
  readonly schema: OrderedSchema | undefined;
  /** Whether it is to be a JSON object that nothing more is said of. */
  readonly isBare: boolean;
  /** Fields about it that mean nothing. */
  readonly ignored: readonly string[];
}

const path = 'response_format';
const guided = 'guided_json';

/** `isCall`: the answer is the call of a function, which has a form already. Throws `validation_error`. */
export function formatIn(body: ChatCompletionRequest, isCall: boolean): ChatFormat {
  const { response_format: format, guided_json: json } = body;
  const isText = format == null || format.type === 'text';
  const ignoredGuide = json != null && (isCall || !isText) ? [guided] : [];
  if (isCall) return { schema: undefined, isBare: false, ignored: [...(isText ? [] : [path]), ...ignoredGuide] };
  const ignored = [...ignoredInFormat(body), ...ignoredGuide];
  if (isText && json != null) return { schema: { path: guided, value: schemaIn(json) }, isBare: false, ignored };
  if (format == null) return { schema: undefined, isBare: false, ignored };
  const { json_schema: named, schema: inner, type } = format;
  const isNamed = type === 'json_schema' && (named != null || inner == null);
  const [schema, at] = isNamed ? [named?.schema, 'json_schema.schema'] : [inner, 'schema'];
  const ordered = schemaOf({ type, path, schema, schemaPath: `${path}.${at}` });
  return { schema: ordered, isBare: type === 'json_object' && schema == null, ignored };
}

const always = ['type'];
const followed: Readonly<Record<string, readonly string[]>> = {
  json_schema: ['json_schema'],
  json_object: ['schema'],
};

function ignoredInFormat({ response_format: format }: ChatCompletionRequest): string[] {
  const { type = '', json_schema: named } = format ?? {};
  const own = Object.hasOwn(followed, type) ? (followed[type] ?? []) : [];
  const fallback = type === 'json_schema' && named == null ? ['schema'] : []; // as some servers have it
  return [
    ...ignoredIn(path, [format], new Set([...always, ...own, ...fallback])),
    ...(type === 'json_schema' ? ignoredIn(`${path}.json_schema`, [named], new Set(['name', 'schema', 'strict'])) : []),
  ];
}

/** As an object, or written out. */
function schemaIn(json: NonNullable<ChatCompletionRequest['guided_json']>): OrderedSchema['value'] {
  if (typeof json !== 'string') return json;
  const value = parsed(json);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as OrderedSchema['value'];
  throw invalid(guided, 'must be a JSON Schema, an object, or its JSON');
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
