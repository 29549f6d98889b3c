/** What a service would use if it were started now. The names are those of the API. */
export interface SetupReport {
  readonly url: string;
  readonly socket: string | null;
  /** Names of the API keys. */
  readonly keys: readonly string[];
  /** Whether requests need a key: also where the keys file holds none. */
  readonly needs_key: boolean;
  /** Whether local callers without a key are told apart by their user, and which of them may call (none: all). */
  readonly local_users: string;
  readonly allowed_users: readonly string[];
  readonly workers: number;
  readonly max_concurrent: number;
  readonly max_queue: number;
  readonly queue_timeout_ms: number;
  readonly execution_timeout_ms: number;
  readonly model_cli: {
    readonly adapter: string;
    readonly command: readonly string[];
    readonly version: string | null;
    readonly ready: boolean;
    readonly duration_ms: number;
    readonly error: string | null;
  };
  /** The models that a request may name, as far as is known. */
  readonly models: readonly { readonly id: string; readonly default: boolean }[];
  /** How processes of the model CLI are held together and ended, and why not by cgroups. */
  readonly termination: { readonly means: string; readonly no_cgroup: string | null };
  readonly warnings: readonly string[];
}
