import type { ReadinessEntry } from '../../shared/health.js';
import type { Phase } from '../../shared/phase.js';

/** State of the service that a front learns. */
export interface FrontSources {
  readonly supervisor: { readonly phase: Phase };
  readonly clis: readonly {
    readonly health: { readonly checks: { readonly current: Pick<ReadinessEntry, 'status'> } };
  }[];
  readonly slots: {
    readonly active: number;
    readonly waiting: number;
    readonly limits: { readonly maxActive: number };
  };
}

/** Port at which a front, such as a load balancer, checks the state of this host. */
export interface Front {
  readonly port: number;
  /** Whether a front checks regularly, and does not know yet that the host leaves. */
  readonly isAsked: boolean;
  /** Starts to report the real state. Before this call, the host is reported as starting. */
  serve(sources: FrontSources): void;
  /**
   * Reports from now on that the host leaves. Resolves when a front has had time to see it, or at the next call; at
   * once without a regular front. Returns false for a call that only ended the wait of an earlier call.
   */
  leave(): Promise<boolean>;
  closePort(): void;
}
