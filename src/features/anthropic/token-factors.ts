import type { LearnedSizes } from '../../primary/cli/model-sizes.js';
import type { Route } from '../../primary/cli/route.js';
import type { TokenCounter } from '../../primary/threads/token-counter.js';
import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { JobRequest } from '../../shared/job.js';
import { attachmentsIn } from '../../shared/text/turns.js';
import { promptTexts } from './prompt-texts.js';

/** Shortest prompt from which a factor is learnt: the CLI adds some hundred tokens to each. */
const minTokens = 8000;
/** Time between two observations of a client for one model. */
const pauseMs = 60_000;
/** Maximum number of models, and of clients for each. */
const maxModels = 256;
const maxClients = 16;
/** Observations of each client. */
const maxObservations = 5;
/** Number of clients whose observations together may change a factor further than one client may. */
const manyClients = 3;
const limitsOfFew = { low: 0.8, high: 1.25 };
const limitsOfMany = { low: 0.5, high: 2 };

/** Observed factors of one model, by client. */
type Observations = Map<string, { readonly factors: number[]; atMs: number }>;

type FactorRoute = Pick<Route, 'adapterModel'> & {
  readonly cli: { readonly name: string; readonly program: Pick<Route['cli']['program'], 'extras'> };
};

interface FactorParts {
  readonly tokens: Pick<TokenCounter, 'countTokens'>;
  readonly sizes: Pick<LearnedSizes, 'factorOf' | 'recordFactor'>;
  readonly clock: Clock;
}

/**
 * Learns how many tokens each model makes of one token of the o200k tokenizer, from the usage that CLIs report. Each
 * client counts once, by the median of its observations.
 */
export class TokenFactors {
  readonly #parts: FactorParts;
  readonly #observed = new Map<string, Observations>();

  constructor(parts: FactorParts) {
    this.#parts = parts;
  }

  factorOf(route: FactorRoute): number {
    return this.#parts.sizes.factorOf(modelOf(route)) ?? assumedFactor(route);
  }

  /** Learns from the usage of an answer. The prompt is counted after the answer, and seldom. Never rejects. */
  async observeTokens(route: FactorRoute, request: JobRequest, inputTokens: number | null): Promise<void> {
    if (inputTokens === null || inputTokens < minTokens || !isComparable(request)) return;
    const client = holderOf(request.client);
    const observation = this.#begin(route, client);
    if (observation === null) return;
    const counted = await this.#parts.tokens.countTokens(promptTexts(request), request.client);
    if (counted < minTokens / limitsOfMany.high) return;
    observation.factors.push(inputTokens / counted);
    if (observation.factors.length > maxObservations) observation.factors.shift();
    this.#parts.sizes.recordFactor(modelOf(route), this.#learntFactor(route));
  }

  /** Returns where to add an observation; null if the last one of this client is too recent. */
  #begin(route: FactorRoute, client: ClientText) {
    const key = keyOf(route);
    const clients: Observations = this.#observed.get(key) ?? new Map();
    setNewest(this.#observed, key, clients, maxModels);
    const nowMs = this.#parts.clock.monotonicMs();
    const known = clients.get(client);
    if (known !== undefined && nowMs < known.atMs + pauseMs) return null;
    const observation = { factors: known?.factors ?? [], atMs: nowMs };
    setNewest(clients, client, observation, maxClients);
    return observation;
  }

  #learntFactor(route: FactorRoute): number {
    const clients = [...(this.#observed.get(keyOf(route))?.values() ?? [])].filter(({ factors }) => factors.length > 0);
    const { low, high } = clients.length < manyClients ? limitsOfFew : limitsOfMany;
    const assumed = assumedFactor(route);
    const learnt = median(clients.map(({ factors }) => median(factors)));
    return Math.min(assumed * high, Math.max(assumed * low, learnt));
  }
}

/** Whether the usage belongs to the texts of the request alone. */
function isComparable({ images, results, history, schema, search, earlier, conversationId }: JobRequest): boolean {
  const isWhole = schema === null && search === undefined && earlier === undefined && conversationId === null;
  return isWhole && attachmentsIn([...history, { images, ...(results && { results }) }]).length === 0;
}

function modelOf({ cli, adapterModel: model }: FactorRoute) {
  return { cli, model };
}

function keyOf({ cli, adapterModel }: FactorRoute): string {
  return `${cli.name} ${adapterModel ?? ''}`;
}

function assumedFactor({ cli, adapterModel }: FactorRoute): number {
  return cli.program.extras?.rulesOf?.(adapterModel).tokenFactor ?? 1;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 1) + (sorted[Math.floor(middle)] ?? 1)) / 2;
}
