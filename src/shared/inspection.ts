/** What a service would use if it were started now; the words are those of the API. */
export interface Inspection {
  readonly url: string;
  readonly socket: string | null;
  /** Names of the API keys. */
  readonly keys: readonly string[];
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
  /** The models a request may name, as far as can be told; the default one is marked. */
  readonly models: readonly { readonly id: string; readonly default: boolean }[];
  readonly warnings: readonly string[];
}
