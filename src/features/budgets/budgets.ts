import type { Spender } from '../../primary/features/feature.js';
import type { CalendarPeriod, LimitAmount, LimitUse } from '../../shared/api/limit-use.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import { periodEnd } from '../stores/contract/days.js';
import type { RecentUsage, Spent } from '../usage/recent-usage.js';
import type { LimitedUse } from './limited-uses.js';
import type { PeriodLimit } from './options.js';

/**
 * Compares what clients have used with their budgets. A budget is checked when a job is admitted, and again when it gets a
 * slot. Running jobs may therefore exceed the budget, but waiting jobs may not.
 */
export class Budgets {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #usage: Pick<RecentUsage, 'spentIn'>;
  readonly #budgetsOf: (client: ClientText, groups: readonly string[]) => readonly LimitedUse[];

  /** `budgetsOf` returns the budgets that limit a client with these groups. */
  constructor(
    clock: Pick<Clock, 'now'>,
    usage: Pick<RecentUsage, 'spentIn'>,
    budgetsOf: (client: ClientText, groups: readonly string[]) => readonly LimitedUse[],
  ) {
    this.#clock = clock;
    this.#usage = usage;
    this.#budgetsOf = budgetsOf;
  }

  /** Throws `rate_limited` if a budget for all models that limits the job is used up. */
  checkBudget({ client, groups = [] }: Spender): void {
    for (const budget of this.#budgetsOf(client, groups)) if (budget.model === undefined) this.#check(budget);
  }

  /** Throws `rate_limited` if a budget for this model that limits the job is used up. `isSame`: whether it is for it. */
  checkModel({ client, groups = [] }: Spender, isSame: (model: string) => boolean): void {
    for (const budget of this.#budgetsOf(client, groups))
      if (budget.model !== undefined && isSame(budget.model)) this.#check(budget);
  }

  #check(budget: LimitedUse): void {
    if (budget.isClosed) throw closed(budget);
    const { tokens, costUsd } = this.#useOf(budget);
    for (const [use, amounts] of [
      [tokens, tokens && `${tokens.used} of ${tokens.max} tokens`],
      [costUsd, costUsd && `$${costUsd.used.toFixed(2)} of $${costUsd.max}`],
    ] as const) {
      if (use === null || use.used < use.max) continue;
      const retryAfterSeconds = retryAfter('budget', Date.parse(use.resets_at) - this.#clock.now());
      const model = budget.model === undefined ? '' : ` for the model ${budget.model}`;
      const name = `the ${adjectives[use.period]} budget of ${subjectOf(budget)}${model}`;
      const message = `${name} is used up: ${amounts}; it resets at ${use.resets_at}`;
      throw new RelayError('rate_limited', message, { reason: 'budget', retryAfterSeconds });
    }
  }

  /** Returns the use of these budgets. */
  usesOf(budgets: readonly LimitedUse[]): LimitUse[] {
    return budgets.flatMap((budget) => {
      const { tokens, costUsd } = this.#useOf(budget);
      const resets = [tokens, costUsd].flatMap((use) => use?.resets_at ?? []).sort();
      return resets[0] === undefined
        ? []
        : [
            {
              client: budget.name,
              kind: budget.kind,
              ...modelOf(budget),
              resets_at: resets[0],
              tokens,
              cost_usd: costUsd,
            },
          ];
    });
  }

  #useOf({ tokens, costUsd, holders }: LimitedUse) {
    return {
      tokens: tokens && this.#amountOf(tokens, holders, 'tokens'),
      costUsd: costUsd && this.#amountOf(costUsd, holders, 'costUsd'),
    };
  }

  #amountOf({ max, period }: PeriodLimit, holders: LimitedUse['holders'], unit: keyof Spent): LimitAmount {
    const resetsAt = timestamp(periodEnd(period, this.#clock.now()));
    return { max, used: this.#usage.spentIn(period, holders)[unit], period, resets_at: resetsAt };
  }
}

const adjectives = { day: 'daily', week: 'weekly', month: 'monthly' } as const satisfies Record<CalendarPeriod, string>;

/** Time after which a client may try again, because the operator may have repaired the line. */
const closedMs = 60_000;

function closed(budget: LimitedUse): RelayError {
  const message = `the budget of ${subjectOf(budget)} has a fault in the keys file, so its requests are refused: tell the operator`;
  return new RelayError('rate_limited', message, {
    reason: 'budget',
    retryAfterSeconds: retryAfter('budget', closedMs),
  });
}

function subjectOf({ name, kind }: LimitedUse): string {
  if (kind === 'service') return 'the service';
  if (kind === 'group') return `the group ${name.slice(1)}`;
  return kind === 'sso' && !name.includes('/') ? 'this person' : 'the API key';
}

/** Returns the model of a budget for one model, as a field. */
function modelOf({ model }: LimitedUse): Pick<LimitUse, 'model'> {
  return model === undefined ? {} : { model };
}
