import { fromWire, invalid, RelayError, toWire } from '../../shared/errors.js';

/** What a failure may be about in a foreign request. */
export interface FailureWords {
  /** The field of its first image; null where there is none. */
  readonly imageField: string | null;
  /** Where it wants a JSON object and describes none: how to send the schema of one. Else null. */
  readonly schemaWish: string | null;
}

/** A failure in the words of the request: with the field that it has sent, or with what it lacks. */
export function inWordsOf({ imageField, schemaWish }: FailureWords, thrown: unknown): unknown {
  if (!(thrown instanceof RelayError)) return thrown;
  if (imageField !== null && isOfImages(thrown))
    return invalid(imageField, 'the model CLI of this service takes no images');
  if (schemaWish === null || thrown.reason !== 'schema_mismatch') return thrown;
  const wish = `json_object alone says nothing of the object: ask for JSON with its fields in the prompt, or send a schema as ${schemaWish}`;
  return fromWire({ ...toWire(thrown), message: `${thrown.message}. ${wish}` });
}

function isOfImages({ code, details }: RelayError): boolean {
  return code === 'validation_error' && details?.[0]?.path === 'images';
}

/** The field of the first part of this type, in these contents by their fields; null where there is none. */
export function partFieldIn(
  contents: readonly (readonly [field: string, content: unknown])[],
  type: string,
): string | null {
  for (const [field, content] of contents) {
    const at = Array.isArray(content) ? content.findIndex((part) => part?.type === type) : -1;
    if (at >= 0) return `${field}.${at}`;
  }
  return null;
}
