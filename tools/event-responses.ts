/** Response to each event that needs one. Events of one kind share it. */
export const eventResponses: readonly (readonly [events: readonly string[], response: string])[] = [
  [['config_warning'], 'Do what the warning says'],
  [
    ['config_invalid', 'workers_unavailable', 'shutdown_timeout'],
    'See the [exit codes](operations.md#exit-codes) 78, 69 and 1',
  ],
  [
    ['readiness_checked', 'breaker_open', 'quota_warning', 'store_down', 'accounts_rejected'],
    'See the alerts PromptRelayNotReady, HeldBack, QuotaNearlyUsed, StoreDown and FileFaults',
  ],
  [['api_busy'], 'If it is frequent, use fewer slots, or ask the provider for a higher limit'],
  [
    ['worker_gone', 'worker_unresponsive', 'worker_output'],
    'See [PromptRelayWorkersCrashing](operations.md#promptrelayworkerscrashing). `worker_gone` with code 2: a client was still reading from a replaced worker',
  ],
  [['cli_failed'], 'Look up its `code` or `reason` in [errors](errors.md#codes)'],
  [
    ['store_warning'],
    '`appendonly`, `maxmemory-policy`, `proto-max-bulk-len`, `client-query-buffer-limit`, `NOPERM`: correct the settings or the rights of [Redis](stores.md#redis). `WRONGTYPE`: another program uses the prefix',
  ],
  [
    ['trace_export_failed'],
    '`no connection`: start the collector, or correct `OTEL_EXPORTER_OTLP_ENDPOINT`. 401, 403: correct `OTEL_EXPORTER_OTLP_HEADERS`. 404: correct the path, or use the HTTP port (4318). For fewer spans, set `OTEL_TRACES_SAMPLER`',
  ],
  [
    ['lent_keys_rejected', 'reservations_rejected'],
    'Find out what has damaged the file in the state folder. Its keys or reservations have ended: make new ones',
  ],
  [['reload_failed'], 'Correct what the log names next to it, and reload again'],
  [
    ['login_ended'],
    'Log in again, or set `MODEL_CODE_OAUTH_TOKEN` ([the login](clis.md#the-login)). Find out who else uses this login',
  ],
  [['login_not_renewed'], 'If it repeats, check the connection to the vendor; jobs fail when the old token expires'],
  [['orphans_reaped'], 'At every start: find out what kills the service (stop time-out, memory)'],
  [
    ['worker_start_failed'],
    'EAGAIN: raise the process limit (`TasksMax=`, `ulimit -u`). EMFILE: raise the limit of open files. ENOENT: Node is missing',
  ],
  [['listen_failed'], 'Use another port or address; for a Unix socket, check the rights of its folder'],
  [
    ['audit_failed'],
    'Make room for `MODEL_API_AUDIT_FILE`, or correct its mode. Until then, acts of administrators and reloads are refused',
  ],
  [
    ['keys_rejected'],
    'Correct the file (`prompt-relay keys check FILE`). `made-keys.json` [cannot be read](clients.md#keys-over-http): restore or remove it. `made-keys` in Redis: bring all hosts to the same version, or restore this key. A record of `made-keys`: delete this key over HTTP',
  ],
  [['cli_request_refused'], 'Report it: the adapter should switch off this tool of the CLI'],
  [['tools_ignored'], 'Send the user [what is supported](sdks.md#what-is-supported-ignored-refused)'],
  [
    ['model_sizes_not_written'],
    'Make `MODEL_API_STATE_FOLDER` writable, or make room. Until then, `GET /models` has no sizes after a start',
  ],
  [
    ['search_failed'],
    'Correct `MODEL_API_SEARCH`, or see what the search server logs. Jobs continue without the search',
  ],
  [['webhook_failed'], 'See what the receiver of [notices](#notices) logs'],
  [['webhook_given_up'], 'See `GET /webhooks/deliveries`. If there were too many notices, the receiver was too slow'],
  [['wrong_keys'], 'An old key, or somebody guesses: ask the user, or block the address'],
  [
    ['answer_not_spilled'],
    'ENOSPC: make room in `$TMPDIR` or `/var/tmp`. EACCES, EROFS, ENOENT: make this folder writable.',
  ],
  [
    ['renewals_paused'],
    'If it happens to several clients, [renewals](operations.md#renewed-processes) do not work with this version of the CLI: install a tested version. With the kind `rewinding`, only edited conversations are replayed',
  ],
  [
    ['cgroup_lost'],
    "Another program removed the service's cgroup, so the limits for a CLI process have no effect: restart the service",
  ],
  [
    ['tree_not_gone'],
    'Run `ps -o pid,stat,wchan,args -p …`. In state D, a process waits for a disk or a network share',
  ],
  [['tree_unclear'], '`ps -o pid,pgid,lstart,args -g …` shows the processes; `kill -KILL -- -<group>` ends the group'],
  [['internal_error'], 'Report it, with message and stack. The service continues; restart it when it suits you'],
];
