import { z } from 'zod';

/** Fewest and most bytes of a secret, as in Standard Webhooks. */
const minSecretBytes = 24;
const maxSecretBytes = 64;

/** Longest URL of a callback. */
export const maxCallbackLength = 2048;

/**
 * Whether a URL may be called back: it has the scheme, host and port of `start`, and its path begins with that of
 * `start`, which `readUrlPattern` returns; null allows none.
 */
export function isCallbackOf(url: string, start: string | null): boolean {
  if (start === null || url.length > maxCallbackLength || !isPlainUrl(url)) return false;
  const [{ origin, pathname }, allowed] = [new URL(url), new URL(start)];
  return origin === allowed.origin && pathname.startsWith(allowed.pathname);
}

const patternForm = /^https?:\/\/[^/\s*]+\/[^\s?#*]*\*$/i;

/** Parses the start of URLs, such as `https://example.org/hooks/*`, without the star; null if it is wrong. */
export function readUrlPattern(text: string): string | null {
  const start = text.slice(0, -1);
  if (!patternForm.test(text) || !isPlainUrl(start)) return null;
  const { origin, pathname } = new URL(start);
  return origin + pathname;
}

/** Schema of the receiver of notices. Faults do not show the value, because its path may be a secret. */
export const webhookUrl = z
  .string()
  .refine(isPlainUrl, 'must be an https:// or http:// URL without a user, such as https://example.org/notices');

function isSecret(value: string): boolean {
  const [, text = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(value) ?? [];
  const { length } = Buffer.from(text, 'base64');
  return length >= minSecretBytes && length <= maxSecretBytes;
}

/** Schema of the secret that signs notices. Faults do not show the value. */
export const webhookSecret = z
  .string()
  .refine(isSecret, `must be whsec_ and ${minSecretBytes} to ${maxSecretBytes} random bytes in base64`);

/** Whether a text is an http:// or https:// URL without a user and without a fragment. */
function isPlainUrl(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}
