import { ignoredFields, maxIgnored, type SentFields } from '../../worker/jobs/job-request.js';

/** Returns the field of the first part that has this type, such as `messages.0.content.1`, or null if there is none. */
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

/** Returns the fields of a schema, except `others`, which have no effect in some requests. */
export function fieldsOf({ shape }: { readonly shape: SentFields }, ...others: readonly string[]): ReadonlySet<string> {
  return new Set(Object.keys(shape).filter((field) => !others.includes(field)));
}

/** Returns the ignored fields of several parts as `name.field`, each once. Empty lists are skipped. */
export function ignoredIn(
  name: string,
  parts: readonly (SentFields | null | undefined)[],
  known: ReadonlySet<string>,
): string[] {
  const found = new Set<string>();
  for (const part of parts) {
    for (const field of ignoredFields(part ?? {}, known))
      if (!isEmptyList(part?.[field])) found.add(`${name}.${field}`);
    if (found.size >= maxIgnored) break;
  }
  return [...found];
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
