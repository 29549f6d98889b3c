import { z } from 'zod';
import { uploadPurposes } from '../files.js';

/** Query parameters of files and batches, and the ID in each line of a batch. */

export const pageLimit = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, 'must be a whole number from 1 to 99999')
  .meta({ description: 'Entries on the page, 1000 at most.' });
export const orderQuery = z.enum(['asc', 'desc'], 'must be asc or desc');
export const uploadPurposeQuery = z.enum([...uploadPurposes, 'batch_output']);
export const idQuery = z.string().min(1, 'must be an id').max(128, 'must be an id');
export const identifiedLine = z.looseObject({ custom_id: z.string() });
