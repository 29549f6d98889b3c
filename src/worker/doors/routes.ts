import type { TakeFromWindow } from '../http/checks.js';
import type { JobParts } from '../jobs/running-job.js';

/** What the routes of the doors work with. */
export interface DoorRouteParts extends JobParts {
  /** For a client that only the body names. */
  readonly take: TakeFromWindow;
}
