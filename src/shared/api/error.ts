import { z } from 'zod';
import { errorReasons, publicCodes } from '../errors.js';

export const errorBody = z
  .strictObject({
    error: z.enum(publicCodes),
    message: z.string(),
    request_id: z.string(),
    reason: z.enum(errorReasons).optional().meta({
      description:
        'The reason of a `cli_error`; `conversation_unknown` for a conversation that cannot be used; `previous_response_not_found` for an unknown `previous_response_id`; `budget` with `rate_limited` for a key whose budget is used up.',
    }),
    retry_after_seconds: z.int().positive().optional(),
    details: z
      .array(z.strictObject({ path: z.string(), message: z.string() }))
      .optional()
      .meta({
        description: 'The faults of the request, with `validation_error`; the missing file, with `not_found`.',
      }),
  })
  .meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof errorBody>;
