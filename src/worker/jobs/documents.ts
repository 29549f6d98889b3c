import { invalid } from '../../shared/errors.js';
import { binaryTypes } from '../../shared/tables/document-types.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import type { SentDocument } from './document-inspector.js';

const maxNameLength = 255;

/** Types of files that are plain text, beside `text/*`. */
const textTypes =
  /^(?:text\/|application\/(?:json|jsonl|x-ndjson|xml|yaml|x-yaml|toml|javascript|sql|csv)$|.+\+(?:json|xml)$)/;

/**
 * Returns a document in base64, whose bytes are inspected later. `name`: the unchecked name of the file. Throws
 * `validation_error` that names the field.
 */
export function documentOf(mediaType: string, data: string, path: string, name: unknown = null): SentDocument {
  const sent = mediaType.toLowerCase().split(';', 1)[0]?.trim() ?? '';
  const type = textTypes.test(sent) ? 'text/plain' : binaryTypes.find((each) => each === sent);
  if (type === undefined)
    throw invalid(path, `must be ${binaryTypes.join(', ')}, or a type of text such as text/plain`);
  return { form: 'base64', mediaType: type, data, digest: '', name: nameOf(name, path), path };
}

/** Returns a document that is a text, which is inspected later. Throws `validation_error` that names the field. */
export function textDocument(data: string, path: string, name: unknown = null): SentDocument {
  return { form: 'text', mediaType: 'text/plain', data, digest: '', name: nameOf(name, path), path };
}

function nameOf(name: unknown, path: string): string {
  if (name != null && typeof name !== 'string') throw invalid(path, 'must have a string as its name');
  // The name becomes part of the text for the model, and must stay on its line.
  const plainName = wellFormed(name ?? '')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
  if (plainName.length > maxNameLength) throw invalid(path, `must have a name of at most ${maxNameLength} characters`);
  return plainName;
}
