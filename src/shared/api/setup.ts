import { z } from 'zod';
import { fileBody, storeKind } from './health.js';

const count = z.int().nonnegative();
const names = z.array(z.string()).readonly();

const modelCliFields = {
  adapter: z.string(),
  command: names,
  version: z.string().nullable(),
  ready: z.boolean(),
  duration_ms: count,
  error: z.string().nullable(),
};
const modelCliSetup = z.strictObject(modelCliFields).readonly();

const namedModel = z.strictObject({ id: z.string(), default: z.boolean(), alias_of: z.string().optional() }).readonly();

/**
 * Set-up of a running service, or of one that would be started with these settings. Keys appear only by their names.
 */
export const setupFields = z.strictObject({
  url: z.string(),
  socket: z.string().nullable(),
  keys: names.meta({ description: 'Names of the API keys.' }),
  needs_key: z.boolean().meta({
    description: 'Whether requests need a key, even if the keys file has none.',
  }),
  local_users: z
    .string()
    .meta({ description: 'Whether the service identifies local callers without a key by their user.' }),
  allowed_users: names.meta({ description: 'The local users who may send requests. Empty: all.' }),
  workers: count,
  max_concurrent: count,
  max_queue: count,
  queue_timeout_ms: count,
  execution_timeout_ms: count,
  model_cli: modelCliSetup.meta({ description: 'Result of the last readiness check of the model CLI.' }),
  model_clis: z
    .array(z.strictObject({ cli: z.string(), ...modelCliFields }).readonly())
    .readonly()
    .meta({ description: 'All model CLIs if several are configured; `model_cli` is the first.' })
    .optional(),
  models: z.array(namedModel).readonly().meta({ description: 'The models that a request may name; empty if unknown.' }),
  termination: z.strictObject({ means: z.string(), no_cgroup: z.string().nullable() }).readonly().meta({
    description:
      'How the service finds and ends the processes of the model CLI, and the reason if it cannot use cgroups.',
  }),
  store: z
    .strictObject({ kind: storeKind, place: z.string().nullable() })
    .readonly()
    .meta({ description: 'Location of the store: the path of a file; null for memory. Without passwords.' }),
  files: z
    .array(fileBody)
    .readonly()
    .meta({ description: 'Files with keys and accounts, which the service reads again when they change.' })
    .optional(),
  warnings: names.meta({ description: 'Of the start.' }),
});
export const setupReport = setupFields.readonly();
export type SetupReport = z.infer<typeof setupReport>;

/** Answer of the model to one trial question. */
export interface TrialAnswer {
  readonly question: string;
  /** Text of the answer; null if the trial failed. */
  readonly answer: string | null;
  readonly model: string | null;
  /** Time from the start of the program to the first piece of the answer; null if no piece arrived. */
  readonly first_delta_ms: number | null;
  /** Number of pieces of the answer. */
  readonly deltas: number;
  readonly duration_ms: number;
  readonly error: string | null;
}

/** `asked`: present if the model got a trial question. */
export type CheckReport = SetupReport & { readonly asked?: TrialAnswer };
