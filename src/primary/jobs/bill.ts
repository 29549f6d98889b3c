import type { LoginNames } from '../../shared/health.js';
import {
  type UsageFigure,
  type UsageFigureTable,
  usageFigureNames,
  usageFigures,
} from '../../shared/tables/usage-figures.js';

/** Amount of a figure. A cost is null if none was reported, which is not a cost of 0. */
export type FigureAmount<N extends UsageFigure> = UsageFigureTable[N]['unit'] extends 'usd' ? number | null : number;

type ChargedFigure = { [N in UsageFigure]: UsageFigureTable[N]['isCharged'] extends true ? N : never }[UsageFigure];

/** Usage of a job for limits and usage reports. Parts that the model CLI does not report are estimated, or 0. */
export type Charge = { readonly [N in ChargedFigure]: FigureAmount<N> };

const chargedFigures = usageFigureNames.filter((name): name is ChargedFigure => usageFigures[name].isCharged);

function chargeBy(amountOf: (figure: ChargedFigure) => number | null): Charge {
  return Object.fromEntries(chargedFigures.map((name) => [name, amountOf(name)])) as Charge;
}

export const noCharge = chargeBy((name) => (usageFigures[name].unit === 'usd' ? null : 0));

/** Returns the charge in a record that has more than this. */
export function chargeIn(record: Charge): Charge {
  return chargeBy((name) => record[name]);
}

/** Whether any amount of a charge is more than 0. */
export function hasCharge(charge: Charge): boolean {
  return chargedFigures.some((name) => (charge[name] ?? 0) > 0);
}

/** The charge of a job, with the model and the login that it is for. `cli` is empty if no CLI had the job. */
export interface Bill extends Charge, LoginNames {
  /** Model of the request by its public name; empty for the default model of a CLI. */
  readonly requested: string;
  /** Model that the CLI has named in the answer so far; null if it has named none. */
  readonly reported: string | null;
  /** Time for which the model CLI had the job, in milliseconds. */
  readonly modelMs: number;
}

export const noBill: Bill = { ...noCharge, requested: '', reported: null, cli: '', modelMs: 0 };

/** Adds two reported amounts; null if both are null, which is not the same as 0. */
export function sumOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}

export function addCharges(a: Charge, b: Charge): Charge {
  return chargeBy((name) => sumOf(a[name], b[name]));
}
