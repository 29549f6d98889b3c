import { z } from 'zod';
import { invalid } from '../../../shared/errors.js';
import type { Effort } from '../../../shared/job.js';
import type { OrderedSchema } from '../../jobs/job-order.js';

export const streamed = z.boolean('must be true or false').nullish();
export const named = z.string('must be a string');

export const jsonSchema = z.record(z.string(), z.unknown(), 'must be a JSON Schema, an object');

/** The form that the answer is to have. */
export interface AskedFormat {
  readonly type: string;
  readonly path: string;
  readonly schema: OrderedSchema['value'] | null | undefined;
  readonly schemaPath: string;
}

/** Undefined for plain text. Throws `validation_error`. */
export function schemaOf({ type, path, schema, schemaPath }: AskedFormat): OrderedSchema | undefined {
  if (type === 'text') return undefined;
  if (type === 'json_object' && schema == null) return { path, value: { type: 'object' } };
  if (type === 'json_object' && schema != null) return { path: schemaPath, value: schema };
  if (type !== 'json_schema') throw invalid(`${path}.type`, 'must be text, json_object or json_schema');
  if (schema == null) throw invalid(schemaPath, 'must be sent');
  return { path: schemaPath, value: schema };
}

const efforts: Readonly<Record<string, Effort>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

/** Undefined for none, and for what nobody knows. */
export function effortOf(name: string | null | undefined): Effort | undefined {
  return name == null || !Object.hasOwn(efforts, name) ? undefined : efforts[name];
}
