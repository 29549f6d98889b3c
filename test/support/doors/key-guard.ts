import type { calls } from '../../../src/features/idempotency/shared.js';
import { createPart } from '../../../src/features/idempotency/worker.js';
import type { WorkerCore } from '../../../src/worker/features/feature.js';
import type { Handler, Primary } from '../../../src/worker/http/exchange.js';

/** Returns the step of routes that records answers for Idempotency-Keys. */
export function keyGuard(primary: Primary): Handler {
  const part = createPart({ primary: primary as unknown as WorkerCore<typeof calls>['primary'] });
  return (req, res, next) => {
    res.locals.recorder = part.recorderOf?.(req, res) ?? null;
    next();
  };
}
