import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import type { Capabilities, Turn, TurnEnd } from '../contract/adapter.js';
import type { CliProcess } from '../process/cli-process.js';
import type { ConversationState } from '../process/cli-state.js';
import type { TextSink } from '../process/open-turn.js';

/** Where a job's process comes from: its own conversation, those that wait, or a start just for it. */
export type LeaseOrigin = 'live' | 'standby' | 'new';

/** A process in the hands of one job. It must be released. */
export interface CliLease {
  readonly process: CliProcess;
  readonly origin: LeaseOrigin;
  /** What the program can be told beside a text. */
  readonly extras: Capabilities;
  /** As `CliProcess.turn`. A live session has heard the history already. */
  turn(turn: Turn, sink: TextSink, signal: AbortSignal): Promise<TurnEnd>;
  /** What was used since the last call; null where that is not measured. */
  usage(): CgroupUsage | null;
  /**
   * Leaves the process to this conversation, where it can take another turn; else, or with null, ends it. Resolves when
   * the processes that the job has used up, or whose place it has taken, are gone.
   */
  release(conversation: ConversationState | null): Promise<void>;
}
