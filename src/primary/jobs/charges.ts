import { setNewest } from '../../shared/bounded-map.js';
import { attachmentsIn, attachmentTokens, messageTexts } from '../../shared/text/turns.js';
import type { Adapter, Turn } from '../cli/contract/adapter.js';
import type { TurnUse } from '../cli/process/open-turn.js';
import { estimateTokens } from '../threads/token-counter.js';
import { type Charge, noCharge } from './bill.js';

/** A turn, and the process that ran it. */
export interface UsedTurn {
  /** Process of the turn, which may run further rounds of the same turn. */
  readonly process: object;
  readonly cli: { readonly name: string; readonly adapter: Pick<Adapter, 'reportsCost'> };
  readonly turn: Turn;
  readonly use: TurnUse;
}

/** Estimates for a process that waits for the results of calls. The next report of the process may include them. */
interface OpenRounds {
  /** Tokens and cost that were charged by estimate before the report. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
  /** Tokens since the last reported cost. */
  readonly tokens: number;
}

const noRounds: OpenRounds = { inputTokens: 0, outputTokens: 0, costUsd: 0, tokens: 0 };

/** Price until a model CLI with cost reports has reported one: $10 per million tokens. */
const assumedUsdPerToken = 10 / 1_000_000;

/** Limit of known prices, because clients may name any number of models. */
const maxPrices = 512;

/** Owns the last known price of each model, and the estimates charged before a model CLI reports. */
export class Charges {
  /** US dollars per token, by CLI and model, and by CLI alone. */
  readonly #prices = new Map<string, number>();
  readonly #rounds = new WeakMap<object, OpenRounds>();

  /** Returns the charge for this turn. Must be called once for each turn. */
  chargeTurn({ process, cli, turn, use }: UsedTurn): Charge {
    const { usage, hasCalls } = use;
    const before = this.#rounds.get(process) ?? noRounds;
    const input = dueOf(usage.inputTokens, before.inputTokens, () => tokensIn(turn));
    const written = Math.ceil(use.outputBytes / 4);
    const reported =
      use.isCut && usage.outputTokens !== null ? Math.max(usage.outputTokens, written) : usage.outputTokens;
    const output = dueOf(reported, before.outputTokens, () => written);
    const tokens = before.tokens + input.due + output.due;
    const model = turn.model ?? '';
    const cost = dueOf(usage.costUsd, before.costUsd, () => (input.due + output.due) * this.#priceOf(cli, model));
    // The price of a web search is not one of tokens: it would raise the estimates for the jobs of other clients.
    const isOfTokens = turn.search === undefined && tokens > 0;
    if (usage.costUsd !== null && isOfTokens) this.#learnPrice(cli.name, model, usage.costUsd / tokens);
    if (hasCalls) {
      const open = { inputTokens: input.open, outputTokens: output.open, costUsd: cost.open };
      this.#rounds.set(process, { ...open, tokens: usage.costUsd === null ? tokens : 0 });
    } else this.#rounds.delete(process);
    const hasCost = usage.costUsd !== null || cli.adapter.reportsCost === true;
    const cachedTokens = Math.min(input.due, usage.cacheReadTokens ?? 0);
    const cacheWriteTokens = Math.min(input.due - cachedTokens, usage.cacheWriteTokens ?? 0);
    const tokenCounts = { inputTokens: input.due, cachedTokens, cacheWriteTokens, outputTokens: output.due };
    return { ...noCharge, ...tokenCounts, costUsd: hasCost ? cost.due : null };
  }

  #priceOf({ name }: UsedTurn['cli'], model: string): number {
    return this.#prices.get(`${name} ${model}`) ?? this.#prices.get(name) ?? assumedUsdPerToken;
  }

  #learnPrice(cli: string, model: string, usdPerToken: number): void {
    setNewest(this.#prices, `${cli} ${model}`, usdPerToken, maxPrices);
    setNewest(this.#prices, cli, usdPerToken, maxPrices);
  }
}

/**
 * Returns the amount to charge for one figure, and the part that stays open until the next report. A report includes
 * the estimates before it.
 */
function dueOf(reported: number | null, openBefore: number, estimate: () => number) {
  if (reported !== null) return { due: Math.max(0, reported - openBefore), open: 0 };
  const due = estimate();
  return { due, open: openBefore + due };
}

function tokensIn({ system, schema, offer, history, ...message }: Turn): number {
  const tools = (offer?.tools ?? []).flatMap(({ description, schema: input }) => [description, input]);
  const messages = [message, ...history];
  const inTexts = estimateTokens([system ?? '', schema ?? '', ...tools, ...messages.flatMap(messageTexts)]);
  return attachmentsIn(messages).reduce((sum, each) => sum + attachmentTokens(each), inTexts);
}
