import { z } from 'zod';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { list } from '../../shared/config/values.js';

/** Origin that browsers send for pages without a name, such as in a sandbox or from a file. */
const noOrigin = 'null';

/** Whether a text is an origin in the spelling that browsers send. Any scheme is possible. */
function isOrigin(value: string): boolean {
  if (value === noOrigin) return true;
  if (everyHost.test(value)) return new URL(value).origin === noOrigin && value !== 'file://*';
  const [, scheme = '', host = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^\s/?#@\\*]*)$/.exec(value) ?? [];
  if (scheme === '' || (host === '' && scheme !== 'file') || !URL.canParse(value)) return false;
  const { origin } = new URL(value);
  return origin === noOrigin ? value === value.toLowerCase() : origin === value;
}

/** Matches all origins of one scheme, such as those of a browser extension that has another id in each installation. */
const everyHost = /^[a-z][a-z0-9+.-]*:\/\/\*$/;

const origins = list.refine(
  (items) => items.every(isOrigin),
  'must be origins as browsers send them, such as https://app.example.org or app://obsidian.md: in small letters, without a path and without the default port; or null, or * after a scheme other than http, https and file, such as moz-extension://*',
);

export const variables = {
  MODEL_API_ALLOWED_ORIGINS: {
    ...{ schema: origins, fallback: '', secrecy: 'none' },
    meaning: 'accepted [browser origins](clients.md#browsers), such as `https://app.example.org`',
    shownDefault: 'none',
  },
} as const satisfies FeatureVariables;

export type OriginValues = ValuesOf<typeof variables>;

export function findWarnings({ MODEL_API_ALLOWED_ORIGINS: allowed }: OriginValues): string[] {
  if (!allowed.includes(noOrigin)) return [];
  return [
    'MODEL_API_ALLOWED_ORIGINS: null allows pages of any site, because any page can use a frame without an origin',
  ];
}

export const calls = {
  /** Returns the origins of pages that may call. */
  allowedOrigins: { request: z.object({}), answer: z.object({ allowed: z.array(z.string()).readonly() }) },
};
