import { z } from 'zod';
import { clientText } from '../../shared/client.js';

/** Why a job has its route, and why it waited. */

export const calls = {
  /** Returns sentences about a job of a client; none for a job that is not known any more. */
  jobReasons: {
    request: z.object({ client: clientText, requestId: z.string() }),
    answer: z.object({ sentences: z.array(z.string()) }),
  },
};
