import { z } from 'zod';
import { toolRoutes } from '../api/endpoints.js';
import { historyBody } from '../api/health.js';
import { modelEntry, modelList } from '../api/models.js';
import { setupReport } from '../api/setup.js';
import { sectionNames } from '../api/status.js';
import { purgeReport, storeBackup, storeReport } from '../api/store.js';
import { versionBody } from '../api/version.js';
import { acceptedView, jobForm, jobListOrder, jobPage, jobStatuses, jobView } from '../background.js';
import { scopes } from '../config/api-keys.js';
import { localUserModes } from '../config/variables.js';
import { conversationPage, titledConversation } from '../conversation.js';
import { continuedText, imageTypes, jobDone, jobEvent, jobRequest, message, turnFigures } from '../job.js';
import { logStyles } from '../log/text.js';
import { familyFiguresSchema } from '../metrics.js';
import { phases } from '../phase.js';
import { claimItem, claimOrder, recordedAnswer, recordedPieceOrder } from './idempotency.js';

const nothing = z.object({});

/** Which conversation or job, and who asks for it. */
const ownedKey = z.object({ id: z.string(), client: z.string() });

/** An API key as a worker knows it: by its SHA-256 digest (hex). */
const workerKey = z.object({
  name: z.string(),
  digest: z.string(),
  scopes: z.array(z.enum(scopes)),
  /** Whether it has a rate of its own. */
  isCapped: z.boolean(),
  /** Whether its holder may name those whom it speaks for. */
  hasSubclients: z.boolean(),
  /** Refused from then on, milliseconds since the epoch. */
  expiresAt: z.number().nullable(),
});
export type WorkerKey = z.infer<typeof workerKey>;

/** null: none is configured, and requests need none. */
const workerKeys = z.array(workerKey).nullable();

/** What a worker needs to serve HTTP. */
export const workerSettingsSchema = z.object({
  /** Open addresses that the worker has inherited under these numbers: it listens on all of them. */
  fds: z.array(z.int()),
  /** The one of them that is for Ollama's clients. */
  ollamaFd: z.int().nullable(),
  bodyLimitBytes: z.int(),
  allowedHosts: z.array(z.string()).nullable(),
  allowedOrigins: z.array(z.string()),
  trustedProxies: z.array(z.string()),
  keys: workerKeys,
  localUsers: z.enum(localUserModes),
  /** Names and ids; none: all may call. */
  allowedUsers: z.array(z.string()),
  /** Whether GET /metrics needs a key. */
  metricsAuth: z.boolean(),
  /** Whether the web console is served. */
  hasConsole: z.boolean(),
  /** Whether what was said in a conversation can be read, and forked. */
  readBack: z.boolean(),
  logLevel: z.string(),
  logStyle: z.enum(logStyles),
  /** Whether there is a cap for clients without one of their own. */
  isCapped: z.boolean(),
  phase: z.enum(phases),
  /** In a drain, a client that takes nothing of its answer for so long is given up. */
  drainUnreadMs: z.number(),
  /** Which requests have spans; null where none are exported. */
  sampler: z.object({ isParentBased: z.boolean(), ratio: z.number() }).readonly().nullable(),
  /** Where the primary leaves traces, should it be killed. */
  traces: z.object({ runtimeParent: z.string(), cgroupParent: z.string().nullable() }),
});
export type WorkerSettings = z.infer<typeof workerSettingsSchema>;

/** What a worker has counted since its last report. */
const figures = z.object({ families: z.array(familyFiguresSchema) });

/** Whether a client may send this request, how many more in this window, and the seconds until it ends, rounded up. */
const rateVerdict = z.object({
  isAllowed: z.boolean(),
  remaining: z.number(),
  resetSeconds: z.number(),
  /** The cap of this client; 0: it has none. */
  maxRequests: z.int(),
  windowSeconds: z.number(),
});
export type RateVerdict = z.infer<typeof rateVerdict>;

/** The body of GET /health, and whether the service can be used. */
const healthText = z.object({ text: z.string(), isUsable: z.boolean() });

const day = z.string().nullable();
/** Sections of the status that have changed since the item before, each written out as JSON; all of them at first. */
const writtenSections = z.partialRecord(z.enum(sectionNames), z.string());
export type WrittenSections = z.infer<typeof writtenSections>;

/** `scopes`: of the key that asks; null where none is needed. */
const usageOrder = z.object({
  client: z.string(),
  scopes: z.array(z.enum(scopes)).readonly().nullable(),
  since: day,
  until: day,
});

/**
 * What was said, in pieces: each message begins with its role, then come its text and its images. A system text comes first.
 */
const transcriptPart = z.discriminatedUnion('type', [
  z
    .object({
      type: z.literal('message'),
      role: z.enum(['system', 'user', 'assistant']),
      /** Of an answer, if they are stored. */
      figures: turnFigures.optional(),
    })
    .readonly(),
  z.object({ type: z.literal('text'), text: z.string() }).readonly(),
  /** `bytes`: of the image itself. */
  z.object({ type: z.literal('image'), mediaType: z.enum(imageTypes), bytes: z.int() }).readonly(),
  /** Base64, of the image before. */
  z.object({ type: z.literal('image-data'), data: z.string() }).readonly(),
]);
export type TranscriptPart = z.infer<typeof transcriptPart>;

/** Where a reader is: in the system text (-1) or a message, there in the text (-1) or an image, after so many bytes of it. */
const transcriptPlace = z
  .object({
    message: z.int(),
    image: z.int(),
    at: z.int(),
    /** The messages there were when the reader began. */
    messageCount: z.int(),
  })
  .readonly();
export type TranscriptPlace = z.infer<typeof transcriptPlace>;

/** How a conversation is read: by so much as fits into one message of the channel, from a place to the next. */
const transcriptOrder = z.object({
  id: z.string(),
  client: z.string(),
  withImages: z.boolean(),
  /** null: from its beginning. */
  from: transcriptPlace.nullable(),
});
const transcriptItem = z.object({
  parts: z.array(transcriptPart).readonly(),
  /** null at the end. */
  next: transcriptPlace.nullable(),
});
export type TranscriptOrder = z.infer<typeof transcriptOrder>;
export type TranscriptItem = z.infer<typeof transcriptItem>;

/** How much of the body of a stored response is read at once. */
export const responsePieceBytes = 192 * 1024;

/** A response of the Responses API that its client wants stored. */
const responseToStore = z.object({
  id: z.string(),
  /** The stored response that it follows. */
  previous: z.string().nullable(),
  /** What it adds to the text of the previous one: its input, and the answer with its calls. */
  messages: z.array(message).readonly(),
  /** What a request that continues its text needs to know of the text. */
  head: continuedText,
  /** The JSON that its client reads. */
  body: z.string(),
});

/** What workers ask of the primary. */
export const primaryCalls = {
  hello: { request: nothing, answer: workerSettingsSchema },
  /** The worker listens on all of its addresses. */
  listening: { request: nothing, answer: nothing },
  heartbeat: { request: nothing, answer: nothing },
  /** An exception was caught by nothing in this worker: it serves on, until it has a successor. */
  broke: { request: nothing, answer: nothing },
  figures: { request: figures, answer: nothing },
  /** The worker exits now, with this code: where it must kill itself, because a write of its log blocks, the code is lost. */
  leaving: { request: z.object({ code: z.int() }), answer: nothing },
  run: { request: jobRequest, item: jobEvent },
  /** The spans of requests that have ended, each as JSON of OTLP. */
  spans: { request: z.object({ texts: z.array(z.string()) }), answer: nothing },
  /** Accepts a background job. */
  accept: { request: z.object({ job: jobRequest, form: jobForm }), answer: acceptedView },
  job: { request: ownedKey, answer: jobView },
  /** All events of a job from its beginning until it has ended, text in pieces of any size. */
  jobEvents: { request: ownedKey, item: jobEvent },
  /** A piece of the answer of one that has succeeded, from that UTF-16 unit on, and its end; no text behind the last piece. */
  jobAnswer: {
    request: ownedKey.extend({ from: z.int().nonnegative() }),
    answer: z.object({ text: z.string(), end: jobDone }),
  },
  jobs: { request: jobListOrder, answer: jobPage },
  /** Ends what waits or runs; what has ended stays as it is. */
  cancelJob: { request: ownedKey, answer: jobView },
  /**
   * Ends what waits or runs, also the job of a caller, and forgets what has ended, unless `keepsEnded`. `isAdmin`: the job
   * may be that of any client; then what has ended is not forgotten. null: it is forgotten.
   */
  deleteJob: {
    request: ownedKey.extend({ isAdmin: z.boolean(), keepsEnded: z.boolean() }),
    answer: z.object({ status: z.enum(jobStatuses).nullable() }),
  },
  /** One item, and no end where that is a claim: cancelling the call gives it up. */
  claim: { request: claimOrder, item: claimItem },
  /** Resolves when the answer is stored, or is not. The claim is over then. */
  record: {
    request: z.object({ claim: z.int(), answer: recordedAnswer }),
    answer: z.object({ isRecorded: z.boolean() }),
  },
  /** A piece of the body of a recorded answer; no text where it is gone. */
  recordedPiece: { request: recordedPieceOrder, answer: z.object({ text: z.string() }) },
  conversation: { request: ownedKey, answer: titledConversation },
  /** `title`: null for its first words. */
  renameConversation: { request: ownedKey.extend({ title: z.string().nullable() }), answer: titledConversation },
  deleteConversation: { request: ownedKey, answer: nothing },
  /** `before`: the `next` of the page before. `search`: null for all, else what a title contains, in capitals or not. */
  conversations: {
    request: z.object({
      client: z.string(),
      before: z.int().nullable(),
      limit: z.int(),
      search: z.string().nullable(),
    }),
    answer: conversationPage,
  },
  /** The next piece. Each reader has its own place; the primary remembers none. */
  transcript: { request: transcriptOrder, answer: transcriptItem },
  /** `messageCount`: how many of its messages the fork has; null: all. */
  forkConversation: {
    request: ownedKey.extend({ messageCount: z.int().nullable() }),
    answer: titledConversation,
  },
  /**
   * Resolves when it is stored. Rejects with `not_found` if the previous response is gone by now, and with
   * `validation_error` if its text is larger than what can be stored.
   */
  storeResponse: { request: z.object({ client: z.string(), response: responseToStore }), answer: nothing },
  /** A piece of its body, from that byte on; no text behind the last piece. `bytes`: the size of the whole body. */
  responsePiece: {
    request: ownedKey.extend({ from: z.int().nonnegative() }),
    answer: z.object({ text: z.string(), bytes: z.int() }),
  },
  /** The messages that a stored response has answered, with those of the text before it; from that one on, in either direction. */
  responseInput: {
    request: ownedKey.extend({ isReversed: z.boolean(), from: z.int().nonnegative().nullable() }),
    item: z.object({ index: z.int(), message }),
  },
  /** Rejects with `validation_error` if its text is larger than a conversation may be. */
  continuedText: { request: ownedKey, answer: continuedText },
  /** Those that follow it stay. */
  deleteResponse: { request: ownedKey, answer: nothing },
  /** Takes one request from the window of this client. */
  rate: { request: z.object({ client: z.string() }), answer: rateVerdict },
  /** Counts a wrong key of this caller: a user or an address, as of `shared/client.ts`. 0: it is not blocked. */
  wrongKey: { request: z.object({ caller: z.string() }), answer: z.object({ blockedSeconds: z.int() }) },
  /** A connection on the Unix socket, by the user at its other end: one item, and no end. Cancelling the call closes it. */
  connection: { request: z.object({ uid: z.int().nullable() }), item: z.object({ isAllowed: z.boolean() }) },
  /** A worker has refused a job of this client because the service drains. */
  refusedDraining: { request: z.object({ client: z.string() }), answer: z.object({ retryAfterSeconds: z.int() }) },
  /** A request of this client has tools, and they are ignored. */
  toolsIgnored: { request: z.object({ client: z.string(), route: z.enum(toolRoutes) }), answer: nothing },
  /** What is wrong with a JSON Schema (JSON); null where it can be used. */
  schemaFault: {
    request: z.object({ schema: z.string(), client: z.string() }),
    answer: z.object({ fault: z.string().nullable() }),
  },
  /** Which of these JSON Schemas (JSON) of tools can't be used, by its place, and what is wrong with it; null where all can. */
  toolFault: {
    request: z.object({ schemas: z.array(z.string()), client: z.string() }),
    answer: z.object({ wrong: z.object({ index: z.int(), fault: z.string() }).nullable() }),
  },
  /** An estimate of the tokens of all texts together. */
  countTokens: {
    request: z.object({ texts: z.array(z.string()).readonly(), client: z.string() }),
    answer: z.object({ tokens: z.int() }),
  },
  /** What an operator does with the store. */
  backupStore: { request: z.object({ name: z.string() }), answer: storeBackup },
  verifyStore: { request: nothing, answer: storeReport },
  purgeClient: { request: z.object({ client: z.string() }), answer: purgeReport },
  /** The body of GET /usage: all of it for an admin, else the client's own rows. Days are both included. */
  usage: { request: usageOrder, answer: z.object({ text: z.string() }) },
  /** `withPids`: process ids of the workers too. */
  health: { request: z.object({ withPids: z.boolean() }), answer: healthText },
  /** The body of GET /status. `withNames`: names of clients and process ids of workers too. */
  status: { request: z.object({ withNames: z.boolean() }), answer: z.object({ text: z.string() }) },
  /** The same as it changes, until it is cancelled. */
  statusFeed: { request: z.object({ withNames: z.boolean() }), item: writtenSections },
  setup: { request: nothing, answer: setupReport },
  recheck: { request: nothing, answer: healthText },
  history: { request: z.object({ since: z.number().nullable(), withPids: z.boolean() }), answer: historyBody },
  models: { request: nothing, answer: modelList },
  /** The model that a request with this name is run with, as far as the CLIs list it. */
  model: { request: z.object({ name: z.string() }), answer: z.object({ model: modelEntry.nullable() }) },
  metrics: { request: nothing, answer: z.object({ text: z.string() }) },
  version: { request: nothing, answer: versionBody },
};
export type PrimaryCalls = typeof primaryCalls;

/** What the primary sends to workers. */
export const workerCalls = {
  phase: { request: z.object({ phase: z.enum(phases) }), answer: nothing },
  /** The keys that are in force from now on. */
  keys: { request: z.object({ keys: workerKeys }), answer: nothing },
  /** The service ends: close each connection when its answer has been sent, then exit, with 0 if all were. */
  stop: { request: z.object({ limitMs: z.number() }), answer: nothing },
  /** A successor listens: take no new connection, finish what is open, then exit. */
  retire: { request: z.object({ limitMs: z.number() }), answer: nothing },
  figures: { request: nothing, answer: figures },
};
export type WorkerCalls = typeof workerCalls;
