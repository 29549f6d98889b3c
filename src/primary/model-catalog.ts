import type { ModelEntry, ModelsBody } from '../shared/api/models.js';
import type { Clock } from '../shared/clock.js';
import type { ModelChoice } from './job-runner.js';

/** A list is asked for again after this time; a CLI that was updated may know other models. */
const maxAgeMs = 10 * 60_000;

/** Owns the list of models as the CLI last told it. */
export class ModelCatalog {
  readonly #ask: () => Promise<readonly ModelEntry[] | null>;
  readonly #choice: ModelChoice;
  readonly #clock: Clock;
  #told: { readonly models: Promise<readonly ModelEntry[]>; readonly askedMs: number } | null = null;

  constructor(ask: () => Promise<readonly ModelEntry[] | null>, choice: ModelChoice, clock: Clock) {
    this.#ask = ask;
    this.#choice = choice;
    this.#clock = clock;
  }

  /** What a request may name. A CLI that can't list its models gives what is configured. */
  async list(): Promise<ModelsBody> {
    const known = await this.#known();
    const allowed = known.filter(({ id }) => this.#choice.allowed?.includes(id) ?? true);
    const models = (allowed.length > 0 ? allowed : this.#configured()).map((model) => this.#withDefault(model));
    return { count: models.length, models };
  }

  #known(): Promise<readonly ModelEntry[]> {
    const now = this.#clock.monotonicMs();
    if (this.#told === null || now - this.#told.askedMs > maxAgeMs) {
      this.#told = {
        models: this.#ask().then(
          (models) => models ?? [],
          () => this.#forget(),
        ),
        askedMs: now,
      };
    }
    return this.#told.models;
  }

  /** A failure is not remembered: the CLI may be there at the next request. */
  #forget(): readonly ModelEntry[] {
    this.#told = null;
    return [];
  }

  #configured(): ModelEntry[] {
    const { allowed, label } = this.#choice;
    const ids = allowed ?? [label ?? 'default'];
    return ids.map((id) => ({ id, name: id, default: id === (label ?? ids[0]) }));
  }

  #withDefault(model: ModelEntry): ModelEntry {
    const { fallback } = this.#choice;
    return fallback === null ? model : { ...model, default: model.id === fallback };
  }
}
