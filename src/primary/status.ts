import type { HealthBody } from '../shared/api/health.js';
import type { VersionBody } from '../shared/api/version.js';
import { type Clock, timestamp } from '../shared/clock.js';
import type { Phase } from '../shared/phase.js';
import type { Fleet } from './fleet.js';
import type { SlotQueue } from './slot-queue.js';

/** Puts the answers of GET /health and GET /version together from the owners of each figure. */
export class Status {
  readonly #clock: Clock;
  readonly #startedAt: string;
  readonly #startedMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = timestamp(clock.now());
    this.#startedMs = clock.monotonicMs();
  }

  health(phase: Phase, slots: SlotQueue, queueTimeouts: number, fleet: Fleet): HealthBody {
    return {
      status: phase === 'draining' || phase === 'stopped' ? 'draining' : 'ok',
      observability: {
        started_at: this.#startedAt,
        uptime_seconds: this.#uptimeSeconds(),
        model_runtime: {
          active_requests: slots.active,
          queued_requests: slots.waiting,
          max_concurrent: slots.limits.maxActive,
          max_queue: slots.limits.maxWaiting,
          rejected_total: slots.refused,
          queue_timeouts_total: queueTimeouts,
        },
        workers: fleet.snapshot(),
      },
    };
  }

  version(
    product: { readonly version: string; readonly commit: string | null },
    cli: { readonly adapter: string; readonly version: string | null },
  ): VersionBody {
    return {
      name: 'prompt-relay',
      version: product.version,
      commit: product.commit,
      node: process.version,
      model_cli: cli,
      uptime_seconds: this.#uptimeSeconds(),
    };
  }

  #uptimeSeconds(): number {
    return Math.round(this.#clock.monotonicMs() - this.#startedMs) / 1000;
  }
}
