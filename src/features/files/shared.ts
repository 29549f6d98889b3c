import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { integer, megabytes, oneOf, seconds } from '../../shared/config/values.js';
import { type FileView, filePurposes, type PageOrder } from '../../shared/files.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';

/** Files of clients: what both processes know of them. */

/** Where files of clients are stored. `memory`: without the limits of files in memory. */
const filePlaces = ['store', 'memory', 'off'] as const;

export const variables = {
  MODEL_API_FILES: {
    ...{ schema: oneOf(filePlaces), fallback: 'store', secrecy: 'none' },
    meaning:
      '[files and batches](batches.md) of clients: `store` stores them in the store, or with [limits](batches.md#limits) in memory if it is not durable; `memory` removes these limits; `off` stores none',
  },
  MODEL_API_FILES_MB: {
    ...{ schema: megabytes(1, 1_000_000), fallback: '512', secrecy: 'none' },
    meaning: 'size of all files of a client, including the results of its batches',
  },
  MODEL_API_MAX_FILES: {
    ...{ schema: integer(1, 1_000_000), fallback: '1000', secrecy: 'none' },
    meaning: 'files of a client; a batch needs two',
  },
  MODEL_API_FILES_TTL_SECONDS: {
    ...{ schema: seconds(1, 365 * 86_400), fallback: '2592000', secrecy: 'none' },
    meaning: 'a file expires this long after its creation, a batch and its results this long after its end',
  },
} as const satisfies FeatureVariables;

export type FileValues = ValuesOf<typeof variables>;

const time = z.number();

/** Largest number of bytes in memory of the files of all clients together, unless `MODEL_API_FILES` is `memory`. */
const memoryBytes = 128 * 1024 * 1024;
/** Longest life of such a file. */
const memoryTtlMs = 86_400_000;

/** Returns the bytes that all clients together may have, and the longest life of a file. */
export function commonLimits(
  { MODEL_API_FILES: place, MODEL_API_FILES_TTL_SECONDS: ttlMs }: FileValues,
  isDurable: boolean,
): { readonly bytes: number; readonly ttlMs: number } {
  if (isDurable || place === 'memory') return { bytes: Number.POSITIVE_INFINITY, ttlMs };
  return { bytes: memoryBytes, ttlMs: Math.min(ttlMs, memoryTtlMs) };
}

/** Schema of `FileView`. */
export const fileView = z
  .object({
    id: z.string(),
    purpose: z.enum(filePurposes),
    name: z.string(),
    mediaType: z.string(),
    bytes: z.int(),
    lines: z.int(),
    createdAt: time,
    expiresAt: time,
  })
  .readonly() satisfies z.ZodType<FileView>;

/** Schema of `PageOrder`. */
export const pageOrder = z
  .object({ client: clientText, after: z.string().nullable(), limit: z.int(), isAscending: z.boolean() })
  .readonly() satisfies z.ZodType<PageOrder>;

const nothing = z.object({});
/** Id of a file, and the client that requests it. */
const ownedKey = z.object({ id: z.string(), client: clientText });

export const calls = {
  /** Begins an upload. */
  createFile: {
    request: z.object({
      client: clientText,
      purpose: z.enum(filePurposes),
      name: z.string(),
      mediaType: z.string(),
    }),
    answer: z.object({ id: z.string() }),
  },
  /** Adds bytes, in base64, to an upload. */
  appendFile: { request: ownedKey.extend({ data: z.string() }), answer: nothing },
  /** Ends an upload. `ttlMs`: time until the file expires; null for the longest one. */
  completeFile: {
    request: ownedKey.extend({
      purpose: z.enum(filePurposes),
      lines: z.int().nonnegative(),
      ttlMs: z.number().nullable(),
    }),
    answer: fileView,
  },
  file: { request: ownedKey, answer: fileView },
  /** Reads a piece of a file, in base64, from one byte position to another at most. Empty after the last piece. */
  filePiece: {
    request: ownedKey.extend({ from: z.int().nonnegative(), to: z.int().nonnegative().optional() }),
    answer: z.object({ data: z.string() }),
  },
  /** `purpose`: null for all files that clients see. */
  files: {
    request: z.object({ order: pageOrder, purpose: z.enum(filePurposes).nullable() }),
    answer: z.object({ files: z.array(fileView), hasMore: z.boolean() }),
  },
  deleteFile: { request: ownedKey, answer: nothing },
};

/** Makes the calls of files. */
export type FileCalls = Pick<Peer<typeof calls, WorkerCalls>, 'call'>;
