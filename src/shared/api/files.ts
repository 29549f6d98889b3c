import { z } from 'zod';
import { uploadPurposes } from '../files.js';

/** Query parameters of files and batches, and their bodies as the command reads them. */

export const pageLimit = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, 'must be a whole number from 1 to 99999')
  .meta({ description: 'Entries on the page, 1000 at most.' });
export const orderQuery = z.enum(['asc', 'desc'], 'must be asc or desc');
export const uploadPurposeQuery = z.enum([...uploadPurposes, 'batch_output']);
export const idQuery = z.string().min(1, 'must be an id').max(128, 'must be an id');
export const fileBody = z.looseObject({ id: z.string() });

export const batchBody = z.looseObject({
  id: z.string(),
  object: z.literal('batch'),
  status: z.enum(['validating', 'in_progress', 'cancelling', 'cancelled', 'completed', 'expired', 'failed']),
  input_file_id: z.string(),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  request_counts: z.looseObject({ total: z.int(), completed: z.int(), failed: z.int() }),
  metadata: z.record(z.string(), z.string()).nullable(),
});
export type BatchBody = z.infer<typeof batchBody>;

export const batchList = z.looseObject({ object: z.literal('list'), data: z.array(batchBody), has_more: z.boolean() });

/** Result of a line. `response` is null if the batch was cancelled or expired before the line was sent. */
export const batchResult = z.looseObject({
  custom_id: z.string().nullable(),
  response: z.looseObject({ request_id: z.string(), body: z.looseObject({}) }).nullable(),
});
export type BatchResult = z.infer<typeof batchResult>;
