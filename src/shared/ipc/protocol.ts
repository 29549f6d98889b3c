import { z } from 'zod';
import { historyBody } from '../api/health.js';
import { modelsBody } from '../api/models.js';
import { versionBody } from '../api/version.js';
import type { ConversationSnapshot } from '../conversation.js';
import type { JobEvent, JobRequest } from '../job.js';
import { operations, outcomes } from '../job.js';
import { phases } from '../phase.js';
import { failureSchema } from './message.js';

const nothing = z.object({});
const ms = z.number().nonnegative();

const jobRequest: z.ZodType<JobRequest> = z.object({
  operation: z.enum(operations),
  requestId: z.string(),
  client: z.string(),
  owner: z.string(),
  conversationId: z.string().nullable(),
  text: z.string(),
  system: z.string().nullable(),
  model: z.string().nullable(),
  wantsPositions: z.boolean(),
});

const usage = z.object({
  inputTokens: z.number().nullable(),
  outputTokens: z.number().nullable(),
  costUsd: z.number().nullable(),
});

const conversation: z.ZodType<ConversationSnapshot> = z.object({
  id: z.string(),
  messageCount: z.int(),
  tokensUsed: z.int(),
  createdAt: z.number(),
  lastActivityAt: z.number(),
  expiresAt: z.number(),
});

/** Which conversation, and the name of the key that asks for it. */
const conversationKey = z.object({ id: z.string(), owner: z.string() });

const jobEvent: z.ZodType<JobEvent> = z.union([
  z.object({ type: z.literal('text-delta'), text: z.string() }),
  z.object({ type: z.literal('job-queued'), position: z.int().positive() }),
  z.object({ type: z.literal('job-start'), queueMs: ms }),
  z.object({
    type: z.literal('job-end'),
    outcome: z.literal('ok'),
    text: z.string().nullable(),
    model: z.string().nullable(),
    usage,
    conversation: conversation.nullable(),
    queueMs: ms,
    executionMs: ms,
  }),
  z.object({
    type: z.literal('job-end'),
    outcome: z.enum(outcomes).exclude(['ok']),
    failure: failureSchema,
    queueMs: ms,
    executionMs: ms,
  }),
]);

/** What a worker needs to stand at the door. API keys come as SHA-256 digests (hex). */
export const doorSettingsSchema = z.object({
  host: z.string(),
  port: z.int(),
  socketPath: z.string().nullable(),
  /** Sockets that systemd listens on, inherited under these numbers; where there are any, they stand for host and port. */
  passedFds: z.array(z.int()),
  bodyLimitBytes: z.int(),
  allowedHosts: z.array(z.string()).nullable(),
  allowedOrigins: z.array(z.string()),
  trustedProxies: z.array(z.string()),
  keys: z.array(z.object({ name: z.string(), digest: z.string() })),
  logLevel: z.string(),
  /** null: no cap. */
  rateLimit: z.object({ maxRequests: z.int(), windowSeconds: z.number() }).nullable(),
  phase: z.enum(phases),
});
export type DoorSettings = z.infer<typeof doorSettingsSchema>;

/** A worker's snapshot as JSON, or the whole exposition. */
const metricsText = z.object({ text: z.string() });

const rateVerdict = z.object({ isAllowed: z.boolean(), remaining: z.number(), resetSeconds: z.number() });

/** GET /health as it is sent: nothing in it is for the worker to read, but whether the service can be used. */
const healthText = z.object({ text: z.string(), isUsable: z.boolean() });

/** What workers ask of the primary. */
export const primaryCalls = {
  hello: { request: nothing, answer: doorSettingsSchema },
  /** The worker listens at this address of a passed socket: nobody but itself can know. */
  listening: { request: z.object({ host: z.string(), port: z.int() }), answer: nothing },
  heartbeat: { request: metricsText, answer: nothing },
  run: { request: jobRequest, item: jobEvent },
  conversation: { request: conversationKey, answer: conversation },
  deleteConversation: { request: conversationKey, answer: nothing },
  /** Takes one request from the window of this address. */
  rate: { request: z.object({ address: z.string() }), answer: rateVerdict },
  /** A job was refused at the door, because the service drains. */
  refusedDraining: { request: nothing, answer: nothing },
  health: { request: nothing, answer: healthText },
  recheck: { request: nothing, answer: healthText },
  history: { request: z.object({ since: z.number().nullable() }), answer: historyBody },
  models: { request: nothing, answer: modelsBody },
  metrics: { request: nothing, answer: metricsText },
  version: { request: nothing, answer: versionBody },
};
export type PrimaryCalls = typeof primaryCalls;

/** What the primary tells workers. */
export const workerCalls = {
  phase: { request: z.object({ phase: z.enum(phases) }), answer: nothing },
  /** The service ends: close each connection when its answer has been sent, then exit, with 0 if all were. */
  stop: { request: z.object({ limitMs: z.number() }), answer: nothing },
  /** A successor listens: take no new connection, end what is open, then exit. */
  retire: { request: z.object({ limitMs: z.number() }), answer: nothing },
  snapshot: { request: nothing, answer: metricsText },
};
export type WorkerCalls = typeof workerCalls;
