import type { ModelList } from '../../shared/api/models.js';
import type { CheckReport, SetupReport, TrialAnswer } from '../../shared/api/setup.js';
import type { Clock } from '../../shared/clock.js';
import { localUrl } from '../../shared/config/addresses.js';
import type { Config } from '../../shared/config/config.js';
import { type StorePlace, urlOfRedis } from '../../shared/config/store-place.js';
import { RelayError, toRelayError } from '../../shared/errors.js';
import type { ReadinessEntry } from '../../shared/health.js';
import { adapterLoader, chooseAdapters } from '../cli/adapters/registry.js';
import { plainLaunch, type TurnEnd } from '../cli/contract/adapter.js';
import { ModelCatalog } from '../cli/model-catalog.js';
import { closeClis, createModelClis, type ModelCli } from '../cli/model-cli.js';
import { Redactor, secretsOf } from '../cli/process/redactor.js';
import { ModelRouter, type Route } from '../cli/route.js';
import { SeenClients } from '../health/seen-clients.js';
import type { Host } from '../lifecycle/host.js';
import { cliMetrics } from '../observe/cli-metrics.js';

/**
 * Asks each model CLI what a readiness check would ask, and starts nothing else; with `asks`, also the default model a
 * question.
 */
export async function reportSetup(config: Config, host: Host, asks: boolean): Promise<CheckReport> {
  const { names, warnings } = await chooseAdapters(config, host.env, adapterLoader(host.clock));
  const digests = new Set([...config.apiKeys, ...config.namedKeys].map(({ digest }) => digest));
  const redactor = new Redactor(secretsOf(host.env, config), (digest) => digests.has(digest));
  const events = { observerOf: cliMetrics(), onChecked: () => {}, onCircuit: () => {} };
  const ofNobody = { ...events, waitingJobs: () => [], isReady: () => false, clients: new SeenClients() };
  const clis = createModelClis(config, host, names, { ...ofNobody, redactor });
  const router = new ModelRouter(names, clis);
  const checkEach = async (cli: ModelCli) => {
    const check = await cli.health.checks.check('forced');
    return { cli, command: cli.commandLine(), check };
  };
  const checked = await Promise.all(clis.map(checkEach));
  const models = await new ModelCatalog(clis, router, config.modelAliases, host.clock).list();
  const route = router.route({ model: null, client: '' });
  const isReady = checked.some(({ cli, check }) => cli === route.cli && check.status === 'ready');
  const asked = asks && isReady ? await askForTrial(route, config.executionMs, host.clock) : undefined;
  await closeClis(clis, host);
  const keys = [...config.apiKeys, ...config.namedKeys].map(({ name }) => name);
  const found = { url: localUrl(config.host, config.port), keys, checked, models };
  const allWarnings = [...config.warnings, ...warnings, ...host.termination.warnings];
  const report = setupReportOf({ config, host, warnings: allWarnings, ...found });
  return asked === undefined ? report : { ...report, asked };
}

export interface CheckedCommand {
  readonly command: readonly string[];
  readonly check: ReadinessEntry;
}

/** What a report is made from. */
export interface SetupSources {
  readonly config: Config;
  readonly host: Pick<Host, 'termination'>;
  readonly url: string;
  /** Names of the API keys. */
  readonly keys: readonly string[];
  /** Of each model CLI. */
  readonly checked: readonly CheckedCommand[];
  readonly models: ModelList;
  readonly warnings: readonly string[];
}

export function setupReportOf({ config, host, url, keys, checked, models, warnings }: SetupSources): SetupReport {
  const { containments, fault } = host.termination;
  const clis = checked.map(({ command, check }) => ({ cli: check.cli, command, ...verdictOf(check) }));
  if (clis[0] === undefined) throw new Error('there is no model CLI');
  const { cli: _, ...first } = clis[0];
  return {
    url,
    socket: config.socketPath,
    keys,
    needs_key: config.needsKey,
    local_users: config.localUsers,
    allowed_users: config.allowedUsers,
    workers: config.workers,
    max_concurrent: config.maxConcurrent,
    max_queue: config.maxQueue,
    queue_timeout_ms: config.queueTimeoutMs,
    execution_timeout_ms: config.executionMs,
    model_cli: first,
    ...(clis.length > 1 && { model_clis: clis }),
    models: models.models.map(({ id, default: isDefault, alias_of: target }) => ({
      id,
      default: isDefault,
      ...(target !== undefined && { alias_of: target }),
    })),
    termination: { means: containments.means, no_cgroup: fault },
    store: { kind: config.store.kind, place: placeOf(config.store) },
    warnings,
  };
}

/** What may be shown of it. */
function placeOf(store: StorePlace): string | null {
  if (store.kind === 'redis') return urlOfRedis(store);
  return store.kind === 'memory' ? null : store.path;
}

function verdictOf({ adapter, version, status, durationMs, error }: ReadinessEntry) {
  const unknown = status === 'unknown' ? 'no readiness check has ended yet' : null;
  return { adapter, version, ready: status === 'ready', duration_ms: durationMs, error: error ?? unknown };
}

export const trialQuestion = 'Say hello in one short sentence.';

/** Has the model answer one question, as a job would, but with no queue. It spends tokens. Never rejects. */
export async function askForTrial(
  { cli, adapterModel, label }: Pick<Route, 'cli' | 'adapterModel' | 'label'>,
  limitMs: number,
  clock: Clock,
): Promise<TrialAnswer> {
  const controller = new AbortController();
  const late = new RelayError('timeout', `the model took longer than ${limitMs} ms (MODEL_API_TIMEOUT)`);
  const stopTimer = clock.after(limitMs, () => controller.abort(late));
  const trial = new Trial(clock);
  const launch = plainLaunch(adapterModel);
  try {
    const lease = await cli.acquire(launch, null, controller.signal);
    const turn = { ...launch, text: trialQuestion, history: [] };
    const end = await lease.turn(turn, trial, controller.signal).finally(() => lease.release(null));
    return trial.answered(end, end.model === null ? label : cli.publicName(end.model));
  } catch (error) {
    return trial.failed(toRelayError(error));
  } finally {
    stopTimer();
  }
}

/** Owns the answer to the question while it comes, and its times. */
class Trial {
  readonly hasEnough = false;
  readonly isFull = false;
  readonly #clock: Clock;
  readonly #begunMs: number;
  readonly #deltas: string[] = [];
  #firstMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#begunMs = clock.monotonicMs();
  }

  write(text: string): void {
    this.#firstMs ??= this.#elapsedMs;
    this.#deltas.push(text);
  }

  async room(): Promise<void> {}

  answered({ text }: TurnEnd, model: string | null): TrialAnswer {
    return { ...this.#figures(), model, answer: text ?? this.#deltas.join(''), error: null };
  }

  failed({ code, reason, message, stderr }: RelayError): TrialAnswer {
    const words = [reason === undefined ? code : `${code} (${reason})`, message, ...(stderr ? [stderr] : [])];
    return { ...this.#figures(), model: null, answer: null, error: words.join(': ') };
  }

  #figures() {
    const first = { first_delta_ms: this.#firstMs, deltas: this.#deltas.length };
    return { question: trialQuestion, ...first, duration_ms: this.#elapsedMs };
  }

  get #elapsedMs(): number {
    return Math.round(this.#clock.monotonicMs() - this.#begunMs);
  }
}
