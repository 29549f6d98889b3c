import type { KeyOptions, PeriodLimit } from '../../shared/config/api-keys.js';

/** Returns the name of an option that allows more than the options of the maker; null if there is none. */
export function exceededOption(options: KeyOptions, maker: KeyOptions): string | null {
  const isWithin: Readonly<Record<string, boolean>> = {
    scopes: options.scopes.every((scope) => maker.scopes.includes(scope)),
    rate: isRateWithin(options, maker),
    concurrent: isAtMost(options.maxConcurrent, maker.maxConcurrent),
    queue: isAtMost(options.maxQueued, maker.maxQueued),
    weight: (options.weight ?? 1) <= (maker.weight ?? 1),
    models: areModelsWithin(options, maker),
    accounts: areAccountsWithin(options, maker),
    fallback: maker.mayFallBack || !options.mayFallBack,
    search: (options.searchesPerDay ?? 0) <= (maker.searchesPerDay ?? 0),
    tokens: isBudgetWithin(options.tokens, maker.tokens),
    cost: isBudgetWithin(options.costUsd, maker.costUsd),
    group: options.group === maker.group,
    webhooks: options.webhooks === null || options.webhooks === maker.webhooks,
    subclients: !options.hasSubclients || maker.hasSubclients,
    expires: isAtMost(options.expiresAt, maker.expiresAt),
  };
  return Object.keys(isWithin).find((name) => isWithin[name] === false) ?? null;
}

/** Compares two limits; null means unlimited. */
function isAtMost(limit: number | null, max: number | null): boolean {
  return max === null || (limit !== null && limit <= max);
}

function isRateWithin({ rate }: KeyOptions, { rate: max }: KeyOptions): boolean {
  return max === null || (rate !== null && rate.maxRequests <= max.maxRequests && rate.windowMs >= max.windowMs);
}

function areModelsWithin({ models }: KeyOptions, { models: allowed }: KeyOptions): boolean {
  return allowed === null || (models?.every((model) => allowed.includes(model)) ?? false);
}

/** Without the option, a key has the accounts that nobody owns, which may not be among those of the maker. */
function areAccountsWithin({ accounts }: KeyOptions, { accounts: allowed }: KeyOptions): boolean {
  if (accounts === null || allowed === null) return accounts === allowed;
  return accounts.every((account) => allowed.includes(account));
}

function isBudgetWithin(budget: PeriodLimit | null, max: PeriodLimit | null): boolean {
  return max === null || (budget !== null && budget.period === max.period && budget.max <= max.max);
}
