import { z } from 'zod';

/** The absolute path of a JavaScript file with an adapter. */
export type AdapterFile = `/${string}`;

const pattern = /^\/.*\.[cm]?js$/;

export function isAdapterFile(text: string): text is AdapterFile {
  return pattern.test(text);
}

/** One of the kinds of model CLIs, or a file with an adapter. */
export function kindOrFile<Kind extends string>(kinds: readonly Kind[]) {
  return z.string().transform((value, context): Kind | AdapterFile => {
    const kind = kinds.find((known) => known === value);
    if (kind !== undefined) return kind;
    if (isAdapterFile(value)) return value;
    const listed = `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}`;
    context.addIssue(`must be ${listed}, or the absolute path of an adapter (.js, .cjs, .mjs)`);
    return z.NEVER;
  });
}
