import type { StoredConversation } from '../contract/conversations.js';
import type { Counts } from '../contract/store.js';
import type { UsageDelta } from '../contract/usage.js';
import type { AnswerOrder, AnswerValue } from './answer-table.js';
import type { ConversationOrder } from './conversation-table.js';
import type { FileReport, SurveyOrder } from './file-survey.js';
import type { JobTableOrder, JobTableValue } from './job-table.js';
import type { UsageOrder } from './usage-table.js';

/** What the thread is asked for. */
export type SqliteOrder =
  | ConversationOrder
  | JobTableOrder
  | UsageOrder
  | AnswerOrder
  | SurveyOrder
  /** Gives back what removed texts have left in the files. */
  | { readonly type: 'tidy' }
  /** Finds out whether so many bytes can be written; 0 clears them away. */
  | { readonly type: 'probe'; readonly bytes: number };

export interface SqliteTask {
  readonly number: number;
  readonly order: SqliteOrder;
}

/** Of `restore`: the next ones, none at the end. Of `tidy`: whether there is more of it to do. */
export type SqliteValue =
  | readonly StoredConversation[]
  | readonly UsageDelta[]
  | JobTableValue
  | AnswerValue
  | FileReport
  | Counts;

/** `gone`: what the order is about is no longer there. */
export type SqliteAnswer =
  | { readonly type: 'done'; readonly number: number; readonly value: SqliteValue }
  | { readonly type: 'gone'; readonly number: number }
  | { readonly type: 'failed'; readonly number: number; readonly reason: string };

/** The first thing that the thread says. */
export type SqliteOpening =
  | { readonly type: 'opened' }
  | { readonly type: 'held' }
  | { readonly type: 'fault'; readonly sentence: string };

/** The last message to the thread. */
export const closeMessage = 'close';
export type SqliteMessage = SqliteTask | typeof closeMessage;

/** What the thread is started with. `migrations` are those of the program, but in tests; null: the file stays of its version. */
export interface SqliteSettings {
  readonly path: string;
  readonly migrations: readonly string[] | null;
}
