import { randomUUID } from 'node:crypto';
import type { AcceptedJob } from '../../primary/jobs/background-part.js';
import type {
  ConversationChange,
  ConversationJournal,
  StoredConversation,
} from '../../primary/store/contract/conversations.js';
import type { StoreObserver } from '../../primary/store/contract/store.js';
import type { StoreTable } from '../../primary/store/contract/store-table.js';
import type { StoredText } from '../../primary/store/contract/stored-text.js';
import type { JobListOrder } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, yieldToEventLoop } from '../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import type { JobRequest, Message } from '../../shared/job.js';
import type { AnswerOfKey, AnswerStore, ClientKey, KnownKey, RecordedBegin } from '../stores/contract/answers.js';
import type { FullStore } from '../stores/contract/full-store.js';
import type { EndedJob, JobPage, JobRecord, JobStore, LoggedText } from '../stores/contract/jobs.js';
import type {
  BodyPiece,
  PutVerdict,
  ResponseCounts,
  ResponseKey,
  ResponseLimits,
  ResponseNode,
  ResponsePart,
  ResponseStore,
} from '../stores/contract/responses.js';
import type { AddedRow, StoreTables, TableRow, TableStore } from '../stores/contract/tables.js';
import { firstDay, firstMonth, type UsageDelta, type UsageStore } from '../stores/contract/usage.js';
import { call, type TableCall } from './calls.js';
import { SqliteClient, type StoreThread } from './client.js';
import type { ResponseChange } from './response-table.js';
import { SqliteFiles } from './sqlite-files.js';
import { SqliteUpkeep } from './sqlite-upkeep.js';

/** Longest wait of a start for a hanging disk. */
const openLimitMs = 5000;
/** Conversations removed per call when no caller waits. */
const maxForgotten = 500;

/** A store in a file. Memory contains only the removals that are still to be done. */
export class SqliteStore implements FullStore {
  readonly kind = 'sqlite';
  readonly isShared = false;
  readonly conversations: SqliteConversations;
  readonly jobs: SqliteJobs;
  readonly usage: SqliteUsage;
  readonly answers: SqliteAnswers;
  readonly responses: SqliteResponses;
  readonly tables: StoreTables;
  readonly files: SqliteFiles;
  readonly upkeep: SqliteUpkeep;
  readonly #client: SqliteClient;
  readonly #onHang: () => void;
  #isClosed = false;

  /** Calls `onHang` if the file could not be closed: the process must then be killed. */
  constructor(
    path: string,
    thread: StoreThread,
    tables: readonly StoreTable[],
    clock: Clock,
    onHang: () => void = () => {},
  ) {
    this.#onHang = onHang;
    this.#client = new SqliteClient(thread, clock, () => void this.conversations.forgetAll());
    this.conversations = new SqliteConversations(this.#client);
    this.jobs = new SqliteJobs(this.#client);
    this.usage = new SqliteUsage(this.#client);
    this.answers = new SqliteAnswers(this.#client);
    this.responses = new SqliteResponses(this.#client);
    this.tables = new Map(tables.map((table) => [table.name, new SqliteTable(this.#client, table)]));
    this.files = new SqliteFiles(this.#client);
    this.upkeep = new SqliteUpkeep(path, this.#client, tables);
  }

  get isUp(): boolean {
    return this.#client.isUp;
  }

  openText(): null {
    return null;
  }

  observe(observer: StoreObserver): void {
    this.#client.observe(observer);
  }

  /**
   * Opens the file. Repeats `openFile` each second while it fails with a PassingFault. Rejects with any other error.
   */
  open(openFile: () => Promise<void>): Promise<void> {
    return this.#client.runStartStep(openFile, openLimitMs);
  }

  restore(takeOver: () => Promise<void>): Promise<void> {
    return this.#client.runStartStep(takeOver);
  }

  /** Runs the open removals if possible, then closes the file. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.isUp) await this.conversations.forgetAll();
    if (!(await this.#client.closeFile())) this.#onHang();
  }
}

/** Owns the set of conversations that are still to be removed from the file. */
class SqliteConversations implements ConversationJournal {
  readonly #client: SqliteClient;
  /** Conversations whose removal is running. A turn may still be committed after it. */
  readonly #removing = new Set<string>();
  readonly #toForget = new Set<string>();
  /**
   * Time at or before which stored conversations had expired at the start; null when they are removed from the file.
   */
  #expired: number | null = null;
  #forgetting: Promise<void> | null = null;

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  async *restoreConversations(after: number): AsyncGenerator<StoredConversation> {
    const readNext = () => this.#client.readStored(call('conversations', 'restoreConversations'));
    await this.#client.readStored(call('conversations', 'beginRestore', after));
    let next = readNext();
    for (;;) {
      const piece = await next;
      if (piece.length === 0) break;
      next = readNext(); // the thread reads the next piece while the caller handles this one
      yield* piece.map(received);
    }
    this.#expired = after;
    void this.forgetAll();
  }

  async commitChange(change: ConversationChange): Promise<void> {
    const isBeingRemoved = this.#removing.has(change.id);
    const undo = { call: call('conversations', 'undo', change), settled: () => this.#client.tidySoon() };
    try {
      await this.#client.ask('commit', call('conversations', 'commitChange', change, this.#client.clock.now()), undo);
    } catch (error) {
      if (change.type === 'fork' || !isGone(error)) throw error;
      if (isBeingRemoved && change.type === 'title') throw error;
      if (isBeingRemoved) return;
      this.#client.fails('the file lacks a conversation that it should have'); // the file was replaced or changed
      throw storeUnavailable();
    }
  }

  async removeConversation(id: string, late: () => void = () => {}): Promise<void> {
    const removal = call('conversations', 'removeConversations', [id]);
    const settled = () => {
      late();
      this.#client.tidySoon();
    };
    this.#removing.add(id);
    try {
      await this.#client.ask('remove', removal, { call: removal, settled });
      this.#client.tidySoon();
    } finally {
      void yieldToEventLoop().then(() => this.#removing.delete(id)); // by then, memory has removed it too
    }
  }

  forget(id: string): void {
    this.#toForget.add(id);
    void this.forgetAll();
  }

  /**
   * Tries to remove forgotten and expired conversations from the file. Resolves when the attempts have ended, also
   * after a failure.
   */
  forgetAll(): Promise<void> {
    this.#forgetting ??= this.#forgetInPieces().finally(() => {
      this.#forgetting = null;
    });
    return this.#forgetting;
  }

  /** Stops at a failure; the remaining removals run when the store is up again. */
  async #forgetInPieces(): Promise<void> {
    if (
      this.#expired !== null &&
      (await this.#isRemoved(call('conversations', 'expireConversations', this.#expired)))
    ) {
      this.#expired = null;
    }
    while (this.#toForget.size > 0 && this.#client.isUp) {
      const ids = [...this.#toForget].slice(0, maxForgotten);
      if (!(await this.#isRemoved(call('conversations', 'removeConversations', ids)))) return;
      for (const id of ids) this.#toForget.delete(id);
    }
  }

  async #isRemoved(removal: TableCall): Promise<boolean> {
    try {
      await this.#client.ask('remove', removal);
      this.#client.tidySoon();
      return true;
    } catch {
      return false;
    }
  }
}

class SqliteJobs implements JobStore {
  readonly isDurable = true;
  readonly shared = null;
  onLost: JobStore['onLost'] = () => {};
  readonly #client: SqliteClient;
  /** Identifies this service in jobs that it starts. */
  readonly #run = newId();

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  /** Stores a job. With an unknown outcome, the job is removed again, because the caller gets an error. */
  async accept(job: AcceptedJob): Promise<void> {
    const undo = { call: call('jobs', 'removeJob', job.id), settled: () => this.#client.tidySoon() };
    await this.#client.ask('job', call('jobs', 'accept', job), undo);
  }

  startJob(id: string, at: number): Promise<boolean> {
    return this.#client.ask('job', call('jobs', 'startJob', id, at, this.#run));
  }

  async endJob(id: string, ended: EndedJob, { blocks }: LoggedText): Promise<boolean> {
    const texts = blocks.map(({ start, text }) => ({ start, text }));
    await this.#client.ask('job', call('jobs', 'endJob', id, ended, texts));
    this.#client.tidySoon();
    return true;
  }

  findJob(id: string, client: ClientText): Promise<JobRecord | null> {
    return this.#client.ask('job', call('jobs', 'findJob', id, client));
  }

  request(id: string): Promise<JobRequest | null> {
    return this.#client.ask('job', call('jobs', 'request', id));
  }

  readText(id: string, from: number): Promise<string> {
    return this.#client.ask('job', call('jobs', 'readText', id, from));
  }

  listJobs(order: JobListOrder): Promise<JobPage> {
    return this.#client.ask('job', call('jobs', 'listJobs', order));
  }

  async removeJob(id: string): Promise<void> {
    await this.#client.ask('job', call('jobs', 'removeJob', id));
    this.#client.tidySoon();
  }

  async expireJobs(before: number): Promise<void> {
    if (await this.#client.ask('job', call('jobs', 'expireJobs', before))) this.#client.tidySoon();
  }

  async *restoreJobs(at: number): AsyncGenerator<AcceptedJob> {
    for (const job of await this.#client.readStored(call('jobs', 'endLost', at))) this.onLost(job);
    for (let after = 0; ; ) {
      const { jobs, last } = await this.#client.readStored(call('jobs', 'queuedJobs', after));
      if (jobs.length === 0) return;
      yield* jobs;
      after = last;
    }
  }
}

/** Stores usage. Owns the batch names by which the file recognises a repeated batch. */
class SqliteUsage implements UsageStore {
  readonly report = null;
  readonly #client: SqliteClient;
  readonly #batches = new WeakMap<readonly UsageDelta[], string>();

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  async *restoreUsage(): AsyncGenerator<UsageDelta> {
    yield* await this.#client.readStored(call('usage', 'readUsage'));
  }

  async addUsage(rows: readonly UsageDelta[]): Promise<void> {
    const batch = this.#batches.get(rows) ?? randomUUID();
    this.#batches.set(rows, batch);
    const now = this.#client.clock.now();
    const ages = { firstDay: firstDay(now), firstMonth: firstMonth(now) };
    await this.#client.ask('usage', call('usage', 'addUsage', batch, rows, ages));
  }
}

class SqliteAnswers implements AnswerStore {
  readonly #client: SqliteClient;

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  /** Reads the recorded answer, also while writes fail: reads may still work. */
  async claimOrFind(key: ClientKey, _digest: string, at: number): Promise<KnownKey> {
    const found = await this.#client.ask('answer', call('answers', 'findAnswer', key, at));
    return found === null ? { type: 'free' } : { type: 'answered', ...found };
  }

  readAnswer(key: ClientKey, digest: string, from: number): Promise<string> {
    return this.#client.ask('answer', call('answers', 'readAnswer', key, digest, from));
  }

  readById(client: ClientText, id: string, from: number): Promise<RecordedBegin | null> {
    return this.#client.ask('answer', call('answers', 'readById', client, id, from));
  }

  /** Stores an answer. With an unknown outcome the answer may remain, because the client got the same one. */
  async keep(key: ClientKey, answer: AnswerOfKey, at: number): Promise<void> {
    if (!this.#client.isUp) throw new Error('the store is unavailable');
    if (await this.#client.ask('answer', call('answers', 'addAnswer', key, answer, at))) this.#client.tidySoon();
  }

  releaseKey(): void {}

  expireAnswers(at: number): void {
    if (this.#client.isUp) void this.#expire(at);
  }

  /** Removes expired answers. A failure is ignored: the next call tries again. */
  async #expire(at: number): Promise<void> {
    const isRemoved = await this.#client.ask('answer', call('answers', 'expireAnswers', at)).catch(() => false);
    if (isRemoved) this.#client.tidySoon();
  }
}

/** Responses in the file. Memory contains only their totals. */
class SqliteResponses implements ResponseStore {
  readonly #client: SqliteClient;
  #counts: ResponseCounts = { count: 0, bytes: 0 };

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  get counts(): ResponseCounts {
    return this.#counts;
  }

  /** Stores a response. With an unknown outcome the response may remain. */
  putResponse(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict> {
    return this.#change(call('responses', 'putResponse', node, limits));
  }

  readPiece(key: ResponseKey, from: number, after: number, part: ResponsePart = 'body'): Promise<BodyPiece | null> {
    return this.#client.ask('response', call('responses', 'readPiece', key, from, after, part));
  }

  readHead(key: ResponseKey, after: number): Promise<string | null> {
    return this.#client.ask('response', call('responses', 'readHead', key, after));
  }

  readMessages(key: ResponseKey, after: number): Promise<readonly Message[] | null> {
    return this.#client.ask('response', call('responses', 'readMessages', key, after));
  }

  removeResponse(key: ResponseKey): Promise<boolean> {
    return this.#change(call('responses', 'removeResponse', key));
  }

  async expireResponses(after: number): Promise<void> {
    if (this.#client.isUp) await this.#change(call('responses', 'expireResponses', after));
  }

  async #change<R>(change: TableCall<ResponseChange<R>>): Promise<R> {
    const { result, hasRemoved, counts } = await this.#client.ask('response', change);
    this.#counts = counts;
    if (hasRemoved) this.#client.tidySoon();
    return result;
  }
}

/** Rows of a declared table in the file. With an unknown outcome, a row may remain although its caller got an error. */
class SqliteTable implements TableStore {
  readonly #client: SqliteClient;
  readonly #table: StoreTable;

  constructor(client: SqliteClient, table: StoreTable) {
    this.#client = client;
    this.#table = table;
  }

  addRow(row: TableRow): Promise<AddedRow> {
    return this.#ask(call('declared', 'addRow', this.#table, row));
  }

  take(now: number, until: number, limit: number): Promise<readonly TableRow[]> {
    return this.#ask(call('declared', 'take', this.#table, now, until, limit));
  }

  updateRow(row: TableRow): Promise<void> {
    return this.#ask(call('declared', 'updateRow', this.#table, row));
  }

  listRows(limit: number): Promise<readonly TableRow[]> {
    return this.#ask(call('declared', 'listRows', this.#table, limit));
  }

  #ask<R>(tableCall: TableCall<R>): Promise<R> {
    return this.#client.ask(this.#table.rowName, tableCall);
  }
}

function isGone(error: unknown): boolean {
  return error instanceof RelayError && error.code === 'not_found';
}

/** Restores buffers, which the thread sends as plain Uint8Arrays. */
function received(conversation: StoredConversation): StoredConversation {
  const turns = conversation.turns.map((turn) => {
    const [user, assistant] = turn.texts;
    const figures = turn.figures && asStored(turn.figures);
    return { ...turn, texts: [asStored(user), asStored(assistant)] as const, figures };
  });
  return { ...conversation, system: conversation.system && asStored(conversation.system), turns };
}

function asStored(text: string | Uint8Array): StoredText {
  return typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length);
}
