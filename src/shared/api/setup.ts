import { z } from 'zod';
import { storeKinds } from './health.js';

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
export const setupReport = z
  .strictObject({
    url: z.string(),
    socket: z.string().nullable(),
    ollama_url: z.string().nullable().meta({ description: 'Of the port for clients of Ollama.' }),
    keys: names.meta({ description: 'Names of the API keys.' }),
    needs_key: z.boolean().meta({
      description: 'Whether requests need a key, also if the keys file has none.',
    }),
    local_users: z
      .string()
      .meta({ description: 'Whether the service distinguishes local callers without a key by their user.' }),
    allowed_users: names.meta({ description: 'The local users who may call. Empty: all.' }),
    workers: count,
    max_concurrent: count,
    max_queue: count,
    queue_timeout_ms: count,
    execution_timeout_ms: count,
    model_cli: modelCliSetup.meta({ description: 'The model CLI, as the last readiness check found it.' }),
    model_clis: z
      .array(z.strictObject({ cli: z.string(), ...modelCliFields }).readonly())
      .readonly()
      .meta({ description: 'If there are several, all of them; `model_cli` is the first.' })
      .optional(),
    models: z
      .array(namedModel)
      .readonly()
      .meta({ description: 'The models that a request may name, if they are known.' }),
    termination: z
      .strictObject({ means: z.string(), no_cgroup: z.string().nullable() })
      .readonly()
      .meta({ description: 'How the service finds and ends the processes of the model CLI, and why not by cgroups.' }),
    store: z
      .strictObject({ kind: z.enum(storeKinds), place: z.string().nullable() })
      .readonly()
      .meta({ description: 'Where conversations are stored: the path of a file; null for memory. No passwords.' }),
    warnings: names.meta({ description: 'Of the start.' }),
  })
  .readonly()
  .meta({ id: 'SetupReport' });
export type SetupReport = z.infer<typeof setupReport>;

/** Answer of the model to one trial question. */
export interface TrialAnswer {
  readonly question: string;
  /** Null if the trial failed. */
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
