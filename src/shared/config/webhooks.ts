import { z } from 'zod';

/** Fewest and most bytes of a secret, as in Standard Webhooks. */
const minSecretBytes = 24;
const maxSecretBytes = 64;

function isReceiver(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}

/** Schema of the receiver of notices. Faults do not show the value, because its path may be a secret. */
export const webhookUrl = z
  .string()
  .refine(isReceiver, 'must be an https:// or http:// URL without a user, such as https://example.org/notices');

function isSecret(value: string): boolean {
  const [, text = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(value) ?? [];
  const { length } = Buffer.from(text, 'base64');
  return length >= minSecretBytes && length <= maxSecretBytes;
}

/** Schema of the secret that signs notices. Faults do not show the value. */
export const webhookSecret = z
  .string()
  .refine(isSecret, `must be whsec_ and ${minSecretBytes} to ${maxSecretBytes} random bytes in base64`);
