import { z } from 'zod';
import { historyBody } from '../api/health.js';
import { modelEntry, modelList } from '../api/models.js';
import { purgeReport, storeBackup, storeReport } from '../api/store.js';
import { versionBody } from '../api/version.js';
import { clientText } from '../client.js';
import { scopes } from '../config/api-keys.js';
import { imageTypes, jobEvent, jobRequest } from '../job.js';
import { logStyles } from '../log/text.js';
import { familyFiguresSchema } from '../metrics.js';
import { phases } from '../phase.js';
import { documentTypes } from '../tables/document-types.js';
import { turnFigures } from '../turn-figures.js';

const nothing = z.object({});

/** Line of the keys file for people. */
const workerPersonLine = z.object({
  name: z.string(),
  scopes: z.array(z.enum(scopes)),
  /** Whether the client has a separate rate cap. */
  isCapped: z.boolean(),
  /** Time after which the client is refused, in milliseconds since the epoch; null if it does not expire. */
  expiresAt: z.number().nullable(),
  /** Group of the client. */
  group: z.string().optional(),
});
export type WorkerPersonLine = z.infer<typeof workerPersonLine>;

/** Client that manages keys or acts as an administrator, and its request. */
export const actor = z.object({ client: clientText, isAdmin: z.boolean(), requestId: z.string() });
export type Actor = z.infer<typeof actor>;

/** API key as a worker stores it: by its SHA-256 digest (hex). */
const workerKey = workerPersonLine.omit({ group: true }).extend({
  /** Client of the key. */
  client: clientText,
  digest: z.string(),
  /** Whether the holder may name sub-clients. */
  hasSubclients: z.boolean(),
  /** Group that ends when the client is refused. */
  endsWith: z.string().optional(),
  /** Id of a key that its client has lent to others for a time; absent for other keys. */
  lentId: z.string().optional(),
});
export type WorkerKey = z.infer<typeof workerKey>;

/** Rights of the client of a request. */
export type ClientRights = Omit<WorkerKey, 'digest' | 'client'>;

/** Line of a group. */
const workerGroup = z.object({
  name: z.string(),
  /** Whether each member has a separate rate cap. */
  isCapped: z.boolean(),
  /** Group around the group. */
  outer: z.string().optional(),
  /** Time at which the group ends, in milliseconds since the epoch; null if it does not. */
  expiresAt: z.number().nullable(),
});
export type WorkerGroup = z.infer<typeof workerGroup>;

/** API keys, lines for people, and groups. `keys` is null if no key is configured, and requests need none. */
const workerKeys = z.object({
  keys: z.array(workerKey).nullable(),
  personLines: z.array(workerPersonLine),
  /** Groups that have a line; absent if none has. */
  groups: z.array(workerGroup).optional(),
});
export type WorkerKeys = z.infer<typeof workerKeys>;

/** Settings that a worker needs to serve HTTP. */
export const workerSettingsSchema = z.object({
  /** Inherited descriptors of listening addresses. The worker listens on all of them. */
  fds: z.array(z.int()),
  /** Descriptors of the open ports of features, by their names. */
  portFds: z.record(z.string(), z.int()),
  bodyLimitBytes: z.int(),
  /** First start of the service, milliseconds since the epoch. */
  firstStartMs: z.number(),
  /** What clients can do with each model because of a feature. */
  modelAbilities: z.array(z.string()),
  allowedHosts: z.array(z.string()).nullable(),
  trustedProxies: z.array(z.string()),
  ...workerKeys.shape,
  /** Whether GET /metrics needs a key. */
  metricsAuth: z.boolean(),
  logLevel: z.string(),
  logStyle: z.enum(logStyles),
  /** Whether clients without a separate cap have a default cap. */
  isCapped: z.boolean(),
  phase: z.enum(phases),
  /** Time after which a client that reads nothing is disconnected during a drain. */
  drainUnreadMs: z.number(),
  /** Locations of runtime files and cgroups, which remain if the primary is killed. */
  runtimePlaces: z.object({ runtimeParent: z.string(), cgroupParent: z.string().nullable() }),
});
export type WorkerSettings = z.infer<typeof workerSettingsSchema>;

/** Figures of a worker: growth of counters since its last report, and all gauges. */
const figures = z.object({ families: z.array(familyFiguresSchema) });

/**
 * Whether the client may send this request, the remaining requests of the window, and the seconds until its end,
 * rounded up.
 */
const rateVerdict = z.object({
  isAllowed: z.boolean(),
  remaining: z.number(),
  resetSeconds: z.number(),
  /** Rate cap of this client; 0 if it is unlimited. */
  maxRequests: z.int(),
  windowSeconds: z.number(),
});
export type RateVerdict = z.infer<typeof rateVerdict>;

/** Body of GET /health, and whether the service accepts jobs. */
const healthText = z.object({ text: z.string(), isUsable: z.boolean() });

/**
 * Part of a transcript. Each message begins with its role, then come its text, its images and its documents. The system
 * text comes first.
 */
const transcriptPart = z.discriminatedUnion('type', [
  z
    .object({
      type: z.literal('message'),
      role: z.enum(['system', 'user', 'assistant']),
      /** Stored figures of an answer. */
      figures: turnFigures.optional(),
    })
    .readonly(),
  z.object({ type: z.literal('text'), text: z.string() }).readonly(),
  /** `bytes`: size of the image itself. */
  z.object({ type: z.literal('image'), mediaType: z.enum(imageTypes), bytes: z.int() }).readonly(),
  /** `bytes`: size of the file itself. */
  z
    .object({ type: z.literal('document'), mediaType: z.enum(documentTypes), name: z.string(), bytes: z.int() })
    .readonly(),
  /** Base64 of the preceding image or document. */
  z.object({ type: z.literal('image-data'), data: z.string() }).readonly(),
]);
export type TranscriptPart = z.infer<typeof transcriptPart>;

/** Position of a reader: index of the message (-1: system text), index of the image or document in it (-1: text), and offset. */
const transcriptPlace = z
  .object({
    message: z.int(),
    image: z.int(),
    at: z.int(),
    /** Number of messages when the reader began. */
    messageCount: z.int(),
  })
  .readonly();
export type TranscriptPlace = z.infer<typeof transcriptPlace>;

/** Request for the next part of a conversation, which fits into one message of the channel. */
export const transcriptOrder = z.object({
  id: z.string(),
  client: clientText,
  withImages: z.boolean(),
  /** Position to read from; null for the beginning. */
  from: transcriptPlace.nullable(),
});
export const transcriptItem = z.object({
  parts: z.array(transcriptPart).readonly(),
  /** Position of the next part; null at the end. */
  next: transcriptPlace.nullable(),
});
export type TranscriptOrder = z.infer<typeof transcriptOrder>;
export type TranscriptItem = z.infer<typeof transcriptItem>;

/** Calls from workers to the primary. Features add further calls. */
export const primaryCalls = {
  hello: { request: nothing, answer: workerSettingsSchema },
  /** Reports that the worker listens on all of its addresses. */
  listening: { request: nothing, answer: nothing },
  heartbeat: { request: nothing, answer: nothing },
  /** An exception was caught by nothing in this worker: it serves on, until it has a successor. */
  broke: { request: nothing, answer: nothing },
  figures: { request: figures, answer: nothing },
  /**
   * Reports that the worker exits with this code. The real exit code is lost if the worker must kill itself because a
   * write of its log blocks.
   */
  leaving: { request: z.object({ code: z.int() }), answer: nothing },
  run: { request: jobRequest, item: jobEvent },
  /** Counts one request in the rate window of this client. */
  rate: { request: z.object({ client: clientText }), answer: rateVerdict },
  /**
   * Counts a wrong key of this caller, a user or an address (see `shared/client.ts`). `blockedSeconds` is 0 if the
   * caller is not blocked.
   */
  wrongKey: { request: z.object({ caller: clientText }), answer: z.object({ blockedSeconds: z.int() }) },
  /**
   * Registers a connection on the Unix socket with the user at its other end. The stream has one item and stays open;
   * cancelling the call ends the registration.
   */
  connection: { request: z.object({ uid: z.int().nullable() }), item: z.object({ isAllowed: z.boolean() }) },
  /** Counts a job that a worker refused because of a drain. */
  refusedDraining: { request: z.object({ client: clientText }), answer: z.object({ retryAfterSeconds: z.int() }) },
  /** Counts a request whose tools are ignored. */
  toolsIgnored: { request: z.object({ client: clientText, route: z.string() }), answer: nothing },
  /** Returns the fault of a JSON schema; null if it is usable. */
  schemaFault: {
    request: z.object({ schema: z.string(), client: clientText }),
    answer: z.object({ fault: z.string().nullable() }),
  },
  /** Returns the index and the fault of the first unusable JSON schema of tools; null if all are usable. */
  toolFault: {
    request: z.object({ schemas: z.array(z.string()), client: clientText }),
    answer: z.object({ wrong: z.object({ index: z.int(), fault: z.string() }).nullable() }),
  },
  /** Returns whether contents of a client may be stored. */
  mayStore: { request: z.object({ client: clientText }), answer: z.object({ mayStore: z.boolean() }) },
  /** Backs up the store. This and the next two calls are for operators. */
  backupStore: { request: z.object({ name: z.string(), by: actor }), answer: storeBackup },
  verifyStore: { request: nothing, answer: storeReport },
  purgeClient: { request: z.object({ client: clientText, by: actor }), answer: purgeReport },
  /** `withPids`: whether to include process ids of workers. */
  health: { request: z.object({ withPids: z.boolean() }), answer: healthText },
  recheck: { request: z.object({ by: actor }), answer: healthText },
  history: { request: z.object({ since: z.number().nullable(), withPids: z.boolean() }), answer: historyBody },
  models: { request: nothing, answer: modelList },
  /** Returns the model that runs requests with this name; null if the CLIs do not list it. */
  model: { request: z.object({ name: z.string() }), answer: z.object({ model: modelEntry.nullable() }) },
  metrics: { request: nothing, answer: z.object({ text: z.string() }) },
  version: { request: nothing, answer: versionBody },
};
export type PrimaryCalls = typeof primaryCalls;

/** Calls from the primary to workers. */
export const workerCalls = {
  phase: { request: z.object({ phase: z.enum(phases) }), answer: nothing },
  /** Replaces the API keys and the lines for people. */
  keys: { request: workerKeys, answer: nothing },
  /**
   * Stops the worker: each connection closes after its answer, then the worker exits, with 0 if all answers were sent.
   */
  stop: { request: z.object({ limitMs: z.number() }), answer: nothing },
  /**
   * Retires the worker after its successor listens: it accepts no new connections, finishes the open ones, and exits.
   */
  retire: { request: z.object({ limitMs: z.number() }), answer: nothing },
  figures: { request: nothing, answer: figures },
};
export type WorkerCalls = typeof workerCalls;
