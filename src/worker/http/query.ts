import type { Request } from 'express';
import { invalid } from '../../shared/errors.js';

/** What checks a parameter, and says what is wrong with it. */
interface ParameterSchema<T> {
  safeParse(value: unknown): {
    readonly success: boolean;
    readonly data?: T | undefined;
    readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined;
  };
}

/** A parameter of the query, sent once; undefined where it was not sent. Throws `validation_error`. */
export function queryOf<T>({ query }: Pick<Request, 'query'>, name: string, schema: ParameterSchema<T>): T | undefined {
  const value = query[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw invalid(name, 'must be sent once');
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  throw invalid(name, error?.issues[0]?.message ?? 'is not valid');
}
