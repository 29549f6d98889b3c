import { type Clock, delay } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { ModelCatalog } from './model-catalog.js';
import { mustBeOneOf, narrowed } from './models.js';
import type { ModelRouter } from './route.js';

/** A CLI that is slow to list its models keeps nobody waiting for a refusal. */
const limitMs = 3000;
/** A list of hundreds is for GET /models. */
const maxNames = 40;

export interface KnownModelsParts {
  readonly router: Pick<ModelRouter, 'choice' | 'modelsOf'>;
  readonly catalog: Pick<ModelCatalog, 'list'>;
  readonly clock: Clock;
}

/** Tells a client that names an unknown model which ones it may name, of all CLIs. */
export class KnownModels {
  readonly #parts: KnownModelsParts;

  constructor(parts: KnownModelsParts) {
    this.#parts = parts;
  }

  /** Whether a model is refused, before its CLI is asked or by that. */
  static isUnknown(error: unknown): error is RelayError {
    if (!(error instanceof RelayError)) return false;
    return (
      error.reason === 'model_unknown' || (error.code === 'validation_error' && error.details?.[0]?.path === 'model')
    );
  }

  /** The same error, with the names where it has none. */
  async explain(error: RelayError, client: string): Promise<RelayError> {
    const { choice } = this.#parts.router;
    const { allowed, limitedBy } = narrowed(choice, this.#parts.router.modelsOf(client));
    const isComplete = error.code === 'validation_error' && (limitedBy !== undefined || choice.fault === undefined);
    if (isComplete) return error;
    const all = allowed ?? (await this.#names());
    return all.length === 0 ? error : withNames(error, listed(all));
  }

  /** None where no CLI tells its models: the catalog has a name for its default then. */
  async #names(): Promise<readonly string[]> {
    const { catalog, clock } = this.#parts;
    const late = delay(clock, limitMs).then(() => null);
    const { models = [] } = (await Promise.race([catalog.list().catch(() => null), late])) ?? {};
    return models.map(({ id }) => id).filter((id) => id !== 'default' || models.length > 1);
  }
}

function listed(names: readonly string[]): string {
  const more = names.length - maxNames;
  return names.slice(0, maxNames).join(', ') + (more > 0 ? ` and ${more} more (GET /models)` : '');
}

function withNames({ code, message, details, ...error }: RelayError, names: string): RelayError {
  const [fault] = details ?? [];
  if (fault === undefined) return new RelayError(code, `${message}; this service has ${names}`, error);
  const { path } = fault;
  const told = fault.message.startsWith(mustBeOneOf)
    ? `${mustBeOneOf} ${names}`
    : `${fault.message}; this service has ${names}`;
  return new RelayError(code, `${path}: ${told}`, { ...error, details: [{ path, message: told }] });
}
