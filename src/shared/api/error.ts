import { z } from 'zod';
import { publicCodes } from '../errors.js';

export const errorBody = z
  .strictObject({
    error: z.enum(publicCodes),
    message: z.string(),
    request_id: z.string(),
    retry_after_seconds: z.int().positive().optional(),
    details: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof errorBody>;
