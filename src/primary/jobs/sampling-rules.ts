import { RelayError } from '../../shared/errors.js';
import { type JobRequest, type OptionalWish, optionalWishes } from '../../shared/job.js';
import type { Capabilities, Turn } from '../cli/contract/adapter.js';
import { ignoredWishes } from '../cli/models.js';
import type { Route } from '../cli/route.js';

/** Beyond these, the model that was remembered first is forgotten. */
const maxModels = 256;

type JobRoute = Pick<Route, 'adapterModel'> & {
  readonly cli: { readonly name: string; readonly program: { readonly extras: Capabilities | null } };
};

/**
 * Owns which models have refused to be told how they pick their words, as newer models do: many clients always send a
 * temperature, and none of them expects to be refused for it.
 */
export class SamplingRules {
  readonly #isOn: boolean;
  readonly #refusing = new Set<string>();

  /** `isOn`: as the operator has configured it. */
  constructor(isOn: boolean) {
    this.#isOn = isOn;
  }

  /** Whether the model of this job is told of it. */
  isTold(route: JobRoute): boolean {
    return this.#isOn && !this.#refusing.has(keyOf(route));
  }

  /** The wishes of a request that mean nothing here, as far as that is known when it arrives. */
  ignored(request: JobRequest, route: JobRoute): OptionalWish[] {
    const { extras } = route.cli.program;
    if (extras === null || this.isTold(route)) return ignoredWishes(request, extras);
    return ignoredWishes(request, { ...extras, wishes: extras.wishes?.filter((wish) => wish === 'isParallel') ?? [] });
  }

  /** Whether a turn has failed because of its sampling: then no model ran, and the same turn goes without. It is remembered. */
  isRefused(error: unknown, turn: Turn, route: JobRoute): boolean {
    if (turn.sampling === undefined || !(error instanceof RelayError) || error.reason !== 'request_refused')
      return false;
    if (!fieldNames.test(error.message)) return false;
    this.#refusing.add(keyOf(route));
    const [first] = this.#refusing;
    if (this.#refusing.size > maxModels && first !== undefined) this.#refusing.delete(first);
    return true;
  }
}

/** The API names the field that it refuses. */
const fieldNames = /\b(?:temperature|top_p|max_tokens)\b/;

/** The wishes that a turn without sampling leaves out. */
export function samplingWishes({ sampling = {} }: Pick<JobRequest, 'sampling'>): OptionalWish[] {
  return optionalWishes.filter((wish) => wish !== 'isParallel' && sampling[wish] !== undefined);
}

function keyOf({ cli, adapterModel }: JobRoute): string {
  return `${cli.name} ${adapterModel ?? ''}`;
}
