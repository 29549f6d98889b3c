import { createHash } from 'node:crypto';
import type { Message } from '../job.js';

/**
 * A chain of hashes (hex) over the messages of a conversation. Two chains with the same end have the same texts, images
 * and roles in the same order. The text can't be read from it.
 */

/** The start of a chain: what a process gets before the first message. */
export function chainStart(system: string | null, schema: string | null): string {
  return createHash('sha256')
    .update(JSON.stringify([system, schema]))
    .digest('hex');
}

/**
 * The chain with one more message. No text holds NUL. Blanks around an answer don't count: clients such as Open WebUI
 * store it without them.
 */
export function chained(before: string, { role, text, images = [] }: Message): string {
  const hash = createHash('sha256').update(`${before}\0${role}\0`);
  for (const { mediaType, at, data } of images) hash.update(`${mediaType}\0${at}\0`).update(data).update('\0');
  return hash.update(role === 'assistant' ? text.trim() : text).digest('hex');
}

/** The name of a conversation of this client with this model that stands at this point. */
export function chainId(chain: string, client: string, model: string | null): string {
  return createHash('sha256')
    .update(JSON.stringify([chain, client, model]))
    .digest('hex');
}
