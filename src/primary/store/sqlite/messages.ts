import type { ConversationChange, KeptConversation } from '../../conversations/conversation-journal.js';

/** What the thread is asked for. `at` is wall-clock time. */
export type SqliteOrder =
  | { readonly type: 'commit'; readonly change: ConversationChange; readonly at: number }
  | { readonly type: 'remove'; readonly ids: readonly string[] }
  /** Begins to read what was last active after that time; `expire` removes the others. */
  | { readonly type: 'begin-restore'; readonly after: number }
  | { readonly type: 'restore' }
  | { readonly type: 'expire'; readonly after: number }
  /** Gives back what removed texts have left in the files. */
  | { readonly type: 'tidy' }
  /** Finds out whether anything can be written. */
  | { readonly type: 'probe' };

export interface SqliteTask {
  readonly number: number;
  readonly order: SqliteOrder;
}

/** Of `restore`: the next ones, none at the end. Of `tidy`: whether there is more of it to do. */
export type SqliteValue = readonly KeptConversation[] | boolean | null;

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

/** What the thread is started with. `migrations` are those of the program, but in tests. */
export interface SqliteSettings {
  readonly path: string;
  readonly migrations: readonly string[];
}
