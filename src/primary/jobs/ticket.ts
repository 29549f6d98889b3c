import { orAborted, withResolvers } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, delay } from '../../shared/clock.js';
import type { CommonShare, Member } from '../../shared/fairness/fair-queue.js';
import type { WaitReason } from '../../shared/job.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { Sharer } from '../fairness/fair-share.js';

/** Rank of a job that waits: before the other jobs of its client, or behind those of all callers. */
export type JobRank = 'urgent' | 'patient';

/** Rule for the running jobs of some clients, such as a group. The room counts the jobs at each gate by its name. */
export interface JobGate {
  readonly name: string;
  /** Why a job waits while the gate has its maximum; by default, because of its client. */
  readonly reason?: WaitReason;
  /** Jobs that may run at once; null for no limit. */
  maxRunning(): number | null;
  /** Returns the number of running jobs below which a waiting job of this gate goes before those of others. */
  minRunning?(): number;
}

/** What the groups of its client say about a job. */
export interface ClientRules {
  /** Rules for the running jobs; they stay the same if the job moves to another CLI. */
  readonly gates: readonly JobGate[];
  readonly share: CommonShare | null;
}

/** Login of a model CLI whose running jobs are limited: all of the CLI, and those of its account. */
export type RoomCli = Pick<ModelCli, 'name' | 'account' | 'loginKey'>;

/** Properties of a job that enters the waiting room. */
export interface Entrant extends Member, Partial<ClientRules> {
  /** Size of its texts and images. */
  readonly bytes: number;
  readonly cli: RoomCli;
  /** Returns the present rules: the groups of a client may change. */
  readRules?(): ClientRules;
  /** Rank among the jobs that wait; null for the usual one. */
  readonly rank?: JobRank | null;
  /** Returns why the job may have no slot, even if one is free; null if it may have one. */
  heldBy(): WaitReason | null;
}

/** Job that waits without a time limit. */
export interface BackgroundEntrant extends Entrant {
  /** Time of acceptance, in milliseconds since the epoch. */
  readonly since: number;
  /** Whether its client follows its events, and therefore waits like a caller. */
  readonly isFollowed: boolean;
  /** Whether the job goes before other jobs of its client. */
  readonly isFirst: boolean;
  /** Called synchronously when the job gets its slot. */
  granted(): void;
}

/** Waiting room as its tickets use it. */
interface TicketIssuer {
  positionOf(ticket: Ticket): number;
  reasonOf(ticket: Ticket): WaitReason;
  /** Releases the slot, or the place in the room, of a ticket. */
  leave(ticket: Ticket, heldSlot: boolean): void;
}

/** Right to a slot, or to a place in the waiting room, until it is released. */
export class Ticket implements Sharer, Member {
  /** Changes only by `WaitingRoom`. */
  entrant: Entrant;
  /** Background properties; null for a caller's job. */
  readonly background: BackgroundEntrant | null;
  /** Milliseconds since the epoch. */
  readonly arrivedAt: number;
  /** Called from time to time with the position while the job waits. Returns whether it was new to the reader. */
  onPosition: (position: number, reason: WaitReason) => boolean = () => false;
  /** Time when the reader got the last position, monotonic. */
  positionMs = Number.NEGATIVE_INFINITY;
  readonly #room: TicketIssuer;
  readonly #granted = withResolvers();
  #state: 'waiting' | 'granted' | 'released' = 'waiting';

  constructor(entrant: Entrant, background: BackgroundEntrant | null, room: TicketIssuer, arrivedAt: number) {
    this.arrivedAt = arrivedAt;
    this.entrant = entrant;
    this.background = background;
    this.#room = room;
  }

  get client(): ClientText {
    return this.entrant.client;
  }

  get lane(): string {
    return this.entrant.lane;
  }

  get share(): CommonShare | null {
    return this.entrant.share ?? null;
  }

  get isUrgent(): boolean {
    return this.entrant.rank === 'urgent';
  }

  get bytes(): number {
    return this.entrant.bytes;
  }

  /** Grants the slot. Only for the room. */
  grant(): void {
    this.#state = 'granted';
    this.background?.granted();
    this.#granted.resolve();
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /** Number of slots that must become free before this job gets one, at present. */
  get position(): number {
    return this.#room.positionOf(this);
  }

  /** Reason why the job waits. */
  get reason(): WaitReason {
    return this.#room.reasonOf(this);
  }

  /**
   * Resolves when the slot is granted. If the signal aborts, the place in the room is freed at once, and it rejects
   * with the reason of the signal.
   */
  async granted(signal: AbortSignal): Promise<void> {
    const leave = () => this.isWaiting && this.release();
    signal.addEventListener('abort', leave, { once: true });
    try {
      await orAborted(this.#granted.promise, signal);
    } finally {
      signal.removeEventListener('abort', leave);
      if (signal.aborted) leave(); // the signal may have been aborted before
    }
  }

  /** Releases the slot, or the place in the room. */
  release(): void {
    if (this.#state === 'released') return;
    const heldSlot = this.#state === 'granted';
    this.#state = 'released';
    this.#room.leave(this, heldSlot);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** All waiting jobs with their positions. The iteration pauses between slices; changes during a pause are picked up. */
export type Positions = Iterator<readonly [ticket: Ticket, position: number]>;

/** Pause before a pass and between two of its slices, in milliseconds. */
const pauseMs = 50;
/** Minimum interval between two reports to the same reader. */
const leastMs = 1000;
/**
 * Maximum number of reports in a slice. Each is a message to a worker and a write to a client, and blocks the event
 * loop.
 */
const maxReports = 32;
/** Maximum number of tickets checked in a slice: an unchanged ticket is cheap, but not free. */
const maxChecked = 2000;

/**
 * Sends queue positions to the readers of waiting jobs, in passes over the whole queue that are cut into slices. A long
 * queue takes more time, but no more load. A change during a pass causes another pass.
 */
export class PositionReports {
  readonly #clock: Clock;
  readonly #positions: () => Positions;
  #hasNews = false;
  /** Earliest time at which a skipped reader may get its next position; infinite if no reader was skipped. */
  #dueMs = Number.POSITIVE_INFINITY;
  #isReporting = false;

  constructor(clock: Clock, positions: () => Positions) {
    this.#clock = clock;
    this.#positions = positions;
  }

  changed(): void {
    this.#hasNews = true;
    if (!this.#isReporting) void this.#report();
  }

  async #report(): Promise<void> {
    this.#isReporting = true;
    try {
      while (this.#hasNews) {
        await delay(this.#clock, this.#pauseMs);
        this.#hasNews = false;
        this.#dueMs = Number.POSITIVE_INFINITY;
        const pass = this.#positions();
        while (!this.#reportSlice(pass)) await delay(this.#clock, pauseMs);
      }
    } finally {
      this.#isReporting = false;
    }
  }

  get #pauseMs(): number {
    const untilDueMs = this.#dueMs - this.#clock.monotonicMs();
    return Number.isFinite(untilDueMs) ? Math.max(pauseMs, untilDueMs) : pauseMs;
  }

  /** Reports positions for one slice. Returns whether the pass is complete. */
  #reportSlice(pass: Positions): boolean {
    const nowMs = this.#clock.monotonicMs();
    let reports = 0;
    for (let checked = 0; checked < maxChecked && reports < maxReports; checked++) {
      const next = pass.next();
      if (next.done === true) return true;
      const [ticket, position] = next.value;
      if (nowMs - ticket.positionMs < leastMs) this.#reportLater(ticket.positionMs + leastMs);
      else if (ticket.onPosition(position, ticket.reason)) {
        ticket.positionMs = nowMs;
        reports++;
      }
    }
    return false;
  }

  #reportLater(dueMs: number): void {
    this.#hasNews = true;
    this.#dueMs = Math.min(this.#dueMs, dueMs);
  }
}
