import { FileFaults } from '../../primary/access/file-faults.js';
import { type AdapterChoice, type AdapterSources, chooseAdapters } from '../../primary/cli/adapters/registry.js';
import { type AnswerEvent, plainLaunch, type TurnEnd } from '../../primary/cli/contract/adapter.js';
import { createLogins } from '../../primary/cli/logins.js';
import { ModelCatalog } from '../../primary/cli/model-catalog.js';
import { closeClis, createModelClis, type ModelCli } from '../../primary/cli/model-cli.js';
import { Redactor, secretsOf } from '../../primary/cli/process/redactor.js';
import { ModelRouter, type Route } from '../../primary/cli/route.js';
import { SeenClients } from '../../primary/health/evidence.js';
import type { Host } from '../../primary/lifecycle/host.js';
import { cliMetrics } from '../../primary/observe/cli-metrics.js';
import type { CheckReport, TrialAnswer } from '../../shared/api/setup.js';
import { noClient } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { localUrl } from '../../shared/config/addresses.js';
import { digestsOf } from '../../shared/config/api-keys.js';
import { type Config, ConfigFault } from '../../shared/config/config.js';
import { RelayError, toRelayError } from '../../shared/errors.js';
import { portUrlsOf, setupReportOf } from './report.js';

/**
 * Runs a readiness check of each model CLI and returns the set-up. Rejects with a ConfigFault for lines that the service
 * would refuse. With `asks`, the default model also answers a
 * question.
 */
export async function reportSetup(
  config: Config,
  host: Host,
  features: AdapterSources['features'],
  asks: boolean,
): Promise<CheckReport> {
  const { names, loginSource, warnings } = await chooseWithoutFaults(config, host, features);
  const context = contextWithoutJobs(config, host);
  const serials = { last: 0 };
  const serviceClis = createModelClis(config, host, names, context, serials);
  const parts = { config, host, names, serials, context, fileFaults: new FileFaults() };
  const logins = createLogins(loginSource, serviceClis, { ...parts, featureOptionsOf: () => ({}), onChange: () => {} });
  context.redactor.replaceTokens(logins.secrets);
  const router = new ModelRouter(names, serviceClis, undefined, logins);
  const firsts = serviceClis.map((cli) => logins.firstOf(cli));
  await Promise.all(firsts.map(({ health }) => health.checks.runCheck('forced')));
  const firstOf = (cli: ModelCli) => logins.firstOf(cli);
  const unshown = { sizes: { sizesOf: () => null }, capabilitiesOf: () => ({}) };
  const catalogParts = { config, clock: host.clock, ...unshown, firstOf };
  const models = await new ModelCatalog(serviceClis, router, catalogParts).list();
  const route = router.route({ model: null, client: noClient });
  const isReady = route.cli.health.checks.current.status === 'ready';
  const trial = asks && isReady ? await askForTrial(route, config.executionMs, host.clock) : undefined;
  await closeClis(logins.all, host);
  const report = setupReportOf({
    config,
    host,
    url: localUrl(config.host, config.port),
    portUrls: portUrlsOf(config.featurePorts, ({ number }) => (number === null ? null : localUrl(config.host, number))),
    keys: [...config.apiKeys, ...config.namedKeys].map(({ name }) => name),
    clis: logins.clis,
    commandOf: (cli) => cli.commandLine(),
    models,
    warnings: [
      ...config.warnings,
      ...warnings,
      ...(loginSource?.warnings(host, names.clis) ?? []),
      ...host.termination.warnings,
    ],
  });
  return trial === undefined ? report : { ...report, asked: trial };
}

/** Returns the context of model CLIs that run no jobs. */
function contextWithoutJobs(config: Config, host: Host) {
  const { apiKeys, namedKeys, featureKeyDigests } = config;
  const digests = new Set([...[...apiKeys, ...namedKeys].flatMap(digestsOf), ...featureKeyDigests]);
  const redactor = new Redactor(secretsOf(host.env, config), (digest) => digests.has(digest));
  const observerOf = cliMetrics();
  return {
    redactor,
    observerOf: ({ names }: Pick<ModelCli, 'names'>) => observerOf(names),
    onChecked: () => {},
    onCircuit: () => {},
    waitingJobs: () => [],
    awaited: () => new Set<string>(),
    isReady: () => false,
    clients: new SeenClients(),
  };
}

async function chooseWithoutFaults(
  config: Config,
  host: Host,
  features: AdapterSources['features'],
): Promise<AdapterChoice> {
  const choice = await chooseAdapters(config, host.env, { clock: host.clock, features });
  if (choice.lineFaults.length > 0) throw new ConfigFault(choice.lineFaults, [...config.warnings, ...choice.warnings]);
  return choice;
}

export const trialQuestion = 'Say hello in one short sentence.';

/** Runs one trial question on the model, like a job but without the queue. The question costs tokens. Never rejects. */
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

/** Owns the answer to the trial question while it is streamed, and its times. */
class Trial {
  readonly hidesThoughts = true;
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

  write(event: AnswerEvent): void {
    if (event.type !== 'text-delta') return;
    this.#firstMs ??= this.#elapsedMs;
    this.#deltas.push(event.text);
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
