import type { StoreTable } from '../../primary/store/contract/store-table.js';
import type { AnswerTable } from './answer-table.js';
import type { ConversationTable } from './conversation-table.js';
import type { DeclaredTables } from './declared-tables.js';
import type { FileTable } from './file-table.js';
import type { JobTable } from './job-table.js';
import type { ResponseTable } from './response-table.js';
import type { UsageTable } from './usage-table.js';
import type { WholeFile } from './whole-file.js';

/** Messages between the primary and the thread of the store. */

/** Tables in the thread. The primary calls their methods. */
export interface Tables {
  readonly conversations: ConversationTable;
  readonly jobs: JobTable;
  readonly usage: UsageTable;
  readonly answers: AnswerTable;
  readonly responses: ResponseTable;
  readonly declared: DeclaredTables;
  readonly files: FileTable;
  readonly file: WholeFile;
}

/** A call of a table method. `result` is never set; its type is the return type of the method. */
export interface TableCall<R = unknown> {
  readonly table: keyof Tables;
  readonly method: string;
  readonly args: readonly unknown[];
  readonly result?: R;
}

type ArgumentsOf<Method> = Method extends (...args: infer Args) => unknown ? Args : never;
type ResultOf<Method> = Method extends (...args: never[]) => infer Result ? Result : never;

export function call<T extends keyof Tables, M extends keyof Tables[T] & string>(
  table: T,
  method: M,
  ...args: ArgumentsOf<Tables[T][M]>
): TableCall<ResultOf<Tables[T][M]>> {
  return { table, method, args };
}

/** The answer to a call. Answers are in the order of the calls. `gone`: the conversation does not exist. */
export type SqliteAnswer =
  | { readonly type: 'done'; readonly value: unknown }
  | { readonly type: 'gone' }
  | { readonly type: 'failed'; readonly reason: string };

/** The error of a change to a conversation that does not exist. */
export class NoSuchConversation extends Error {}

/** The first message from the thread: whether the file could be opened. */
export type SqliteOpening =
  | { readonly type: 'opened' }
  | { readonly type: 'held' }
  | { readonly type: 'fault'; readonly sentence: string; readonly passes: boolean };

/** The last message to the thread. */
export const closeMessage = 'close';
export type SqliteMessage = TableCall | typeof closeMessage;

/**
 * Start options of the thread. `migrations` is replaced only in tests; null leaves the version of the file unchanged.
 */
export interface SqliteSettings {
  readonly path: string;
  /** Tables to create unless the file has them. */
  readonly tables: readonly StoreTable[];
  readonly migrations: readonly string[] | null;
}
