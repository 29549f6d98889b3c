import { FairShare, type Sharer } from '../../../primary/fairness/fair-share.js';
import type { AcceptedJob } from '../../../primary/jobs/background-part.js';
import type { StoreTable } from '../../../primary/store/contract/store-table.js';
import { noStore } from '../../../primary/store/memory-store.js';
import type { JobListOrder } from '../../../shared/background.js';
import { type ClientText, isOfClient } from '../../../shared/client.js';
import type { JobRequest, Message } from '../../../shared/job.js';
import {
  type AnswerOfKey,
  type AnswerStore,
  type ClientKey,
  type KnownKey,
  maxAnswerBytes,
  nameOfKey,
  pieceOf,
  type RecordedBegin,
  type RecordedHead,
  recordedPieceBytes,
} from '../contract/answers.js';
import type { FullStore, FullUpkeep, OpenedFullStore } from '../contract/full-store.js';
import type { EndedJob, JobPage, JobRecord, JobStore, LoggedText } from '../contract/jobs.js';
import {
  type BodyPiece,
  type PutVerdict,
  type ResponseCounts,
  type ResponseKey,
  type ResponseLimits,
  type ResponseNode,
  type ResponsePart,
  type ResponseStore,
  responsePieceBytes,
  writtenInTurns,
} from '../contract/responses.js';
import type { SharedJobs } from '../contract/shared-jobs.js';
import type { TableRow } from '../contract/tables.js';
import type { UsageStore } from '../contract/usage.js';
import { AnswerShares, isExpired } from '../shares/answer-shares.js';
import { ResponseIndex } from '../shares/response-index.js';
import { MemoryFiles } from './memory-files.js';
import { MemoryTable } from './memory-table.js';

export function openMemory(declared: readonly StoreTable[]): OpenedFullStore {
  return { store: memoryStore(declared), hosts: null };
}

/** Makes a store in memory: a restart loses everything. */
export function memoryStore(declared: readonly StoreTable[]): FullStore {
  const answers = new MemoryAnswers();
  const responses = new MemoryResponses();
  const tables = new Map(declared.map((table) => [table.name, new MemoryTable(table)]));
  const files = new MemoryFiles();
  const removable = { idempotency: answers, responses, files, ...Object.fromEntries(tables) };
  return {
    ...noStore,
    jobs: new MemoryJobs(),
    usage: noUsageStore,
    ...{ answers, responses, tables, files, openText: () => null },
    upkeep: memoryUpkeep(removable, tables.values(), { response: responses, answer: answers }),
  };
}

const noUsageStore: UsageStore = { restoreUsage: async function* () {}, addUsage: async () => {}, report: null };

/** A store whose entries of one client can be removed. `removeOf` returns their number. */
interface RemovableOfClient {
  /** Clients of all entries, also several times. */
  readonly clients: Iterable<ClientText>;
  removeOf(client: ClientText): number;
}

function memoryUpkeep(
  stores: Readonly<Record<string, RemovableOfClient>>,
  tables: Iterable<Pick<MemoryTable<TableRow>, 'expireRows'>>,
  listed: Readonly<Record<'response' | 'answer', { idsOf(client: ClientText): string[] }>>,
): FullUpkeep {
  const expiring = [...tables];
  return {
    ...noStore.upkeep,
    expireRows: async (now) => {
      for (const table of expiring) table.expireRows(now);
    },
    clientsWith: async (owner) => {
      const all = Object.values(stores).flatMap(({ clients }) => [...clients]);
      return [...new Set(all)].filter(isOfClient(owner));
    },
    idsOf: async (client, kind) => listed[kind].idsOf(client),
    purge: async (client) =>
      Object.fromEntries(Object.entries(stores).map(([name, store]) => [name, store.removeOf(client)])),
  };
}

/** A recorded answer, with its body in a buffer outside of the V8 heap. */
interface MemoryAnswer {
  readonly digest: string;
  readonly head: RecordedHead;
  readonly body: Buffer;
  readonly recordedAt: number;
}

/** Owns the recorded answers of a service without a durable store. */
export class MemoryAnswers implements AnswerStore {
  readonly #shares: AnswerShares;
  readonly #answers = new Map<string, MemoryAnswer>();

  constructor(maxBytes = maxAnswerBytes) {
    this.#shares = new AnswerShares(maxBytes);
  }

  async claimOrFind(key: ClientKey, _digest: string, at: number): Promise<KnownKey> {
    const found = this.#answers.get(nameOfKey(key));
    if (found === undefined || isExpired(found, at)) return { type: 'free' };
    const { digest, head, body } = found;
    return { type: 'answered', digest, answer: { ...head, begin: pieceAt(body, 0), bytes: body.length } };
  }

  async readAnswer(key: ClientKey, digest: string, from: number): Promise<string> {
    const found = this.#answers.get(nameOfKey(key));
    return found?.digest === digest ? pieceAt(found.body, from) : '';
  }

  async readById(client: ClientText, id: string, from: number): Promise<RecordedBegin | null> {
    const found = this.#answers.get(nameOfKey({ client, key: id }));
    return found === undefined ? null : { ...found.head, begin: pieceAt(found.body, from), bytes: found.body.length };
  }

  idsOf(client: ClientText): string[] {
    return this.#shares.keysOf(client);
  }

  async keep(key: ClientKey, { digest, answer }: AnswerOfKey, at: number): Promise<void> {
    const { body: text, ...head } = answer;
    const body = Buffer.from(text);
    this.#answers.set(nameOfKey(key), { digest, head, body, recordedAt: at });
    for (const gone of this.#shares.addEntry({ ...key, bodyBytes: body.length, recordedAt: at })) this.#drop(gone);
  }

  get clients(): ClientText[] {
    return [...this.#answers.keys()].map((name) => name.slice(0, name.indexOf('\n')) as ClientText);
  }

  /** Removes the answers of a client. Returns their number. */
  removeOf(client: ClientText): number {
    const removed = this.#shares.removeOf(client);
    for (const entry of removed) this.#drop(entry);
    return removed.length;
  }

  releaseKey(): void {}

  expireAnswers(at: number): void {
    for (const expired of this.#shares.expireEntries(at)) this.#drop(expired);
  }

  #drop(key: ClientKey): void {
    this.#answers.delete(nameOfKey(key));
  }
}

function pieceAt(body: Buffer, from: number): string {
  return pieceOf(body.subarray(from, from + recordedPieceBytes));
}

/**
 * Limits: UTF-16 units of all answers together, and ended jobs. Beyond them, the oldest job of the client with the most
 * is removed.
 */
const maxLength = 128 * 1024 * 1024;
const maxEnded = 10_000;

const noText: LoggedText = { length: 0, blocks: [], readBlock: () => '' };

interface MemoryJob extends Sharer {
  /** Rises with each job. */
  readonly number: number;
  record: JobRecord;
  /** Request of a queued job. */
  request: JobRequest | null;
  text: LoggedText;
  /** UTF-16 units of answer and thoughts, plus one so that a job without text counts too. */
  bytes: number;
}

/** Owns the records and answers of background jobs. A restart loses them. */
export class MemoryJobs implements JobStore {
  readonly isDurable = false;
  readonly shared: SharedJobs | null = null;
  onLost = () => {};
  readonly #byId = new Map<string, MemoryJob>();
  #lastNumber = 0;
  /** Ended jobs, in the order of their end. */
  readonly #ended = new Set<MemoryJob>();
  readonly #shares = new FairShare<MemoryJob>();

  async accept({ id, title, form, request, createdAt }: AcceptedJob): Promise<void> {
    const { client, operation, requestId } = request;
    const times = { createdAt, startedAt: null, endedAt: null };
    const record: JobRecord = { id, client, title, form, operation, requestId, status: 'queued', ...times, end: null };
    this.#byId.set(id, { number: ++this.#lastNumber, client, record, request, text: noText, bytes: 1 });
  }

  async startJob(id: string, startedAt: number): Promise<boolean> {
    const job = this.#byId.get(id);
    if (job?.record.status !== 'queued') return false;
    job.record = { ...job.record, status: 'running', startedAt };
    job.request = null;
    return true;
  }

  async endJob(id: string, ended: EndedJob, text: LoggedText): Promise<boolean> {
    const job = this.#byId.get(id);
    if (job === undefined || this.#ended.has(job)) return true;
    job.record = { ...job.record, ...ended };
    job.request = null;
    job.text = text;
    job.bytes = text.length + thoughtLength(ended) + 1;
    this.#ended.add(job);
    this.#shares.addMember(job, ended.endedAt);
    while (this.#shares.bytes - this.#ended.size > maxLength || this.#ended.size > maxEnded) this.#forgetOne();
    return true;
  }

  async findJob(id: string, client: ClientText | null): Promise<JobRecord | null> {
    const record = this.#byId.get(id)?.record ?? null;
    return client === null || record?.client === client ? record : null;
  }

  async request(id: string): Promise<JobRequest | null> {
    return this.#byId.get(id)?.request ?? null;
  }

  async readText(id: string, from: number): Promise<string> {
    return this.#byId.get(id)?.text.readBlock(from) ?? '';
  }

  async listJobs({ client, status, before, limit }: JobListOrder): Promise<JobPage> {
    const found = [...this.#byId.values()]
      .filter(({ record, number }) => (client === null || record.client === client) && number < (before ?? Infinity))
      .filter(({ record }) => status === null || record.status === status)
      .slice(-limit - 1)
      .toReversed();
    const shown = found.slice(0, limit);
    return {
      jobs: shown.map(({ record }) => record),
      next: found.length > limit ? (shown.at(-1)?.number ?? null) : null,
    };
  }

  async removeJob(id: string): Promise<void> {
    const job = this.#byId.get(id);
    if (job !== undefined) this.#forget(job);
  }

  async expireJobs(before: number): Promise<void> {
    for (const job of this.#ended) {
      if ((job.record.endedAt ?? 0) >= before) return;
      this.#forget(job);
    }
  }

  async *restoreJobs(): AsyncGenerator<AcceptedJob> {}

  #forgetOne(): void {
    const victim = this.#shares.pickVictim({ byUser: true });
    if (victim !== undefined) this.#forget(victim);
  }

  #forget(job: MemoryJob): void {
    this.#byId.delete(job.record.id);
    this.#ended.delete(job);
    this.#shares.removeMember(job);
  }
}

/** Texts of a response, in buffers outside of the V8 heap. */
interface ResponseTexts {
  readonly messages: Buffer;
  readonly body: Buffer;
  readonly head: string;
}

/** Owns the stored responses of a service without a durable store. */
export class MemoryResponses implements ResponseStore {
  readonly #index = new ResponseIndex();
  readonly #texts = new Map<string, ResponseTexts>();

  get counts(): ResponseCounts {
    return this.#index.counts;
  }

  get clients(): ClientText[] {
    return this.#index.clients;
  }

  idsOf(client: ClientText): string[] {
    return this.#index.idsOf(client);
  }

  async putResponse(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict> {
    const { messages, body, bytes, weight } = await writtenInTurns(node, limits);
    const { verdict, evicted: gone } = this.#index.put({ ...node, bytes, weight }, limits);
    if (verdict === 'stored') this.#texts.set(node.id, { messages, body, head: node.head });
    this.#drop(gone);
    return verdict;
  }

  async readPiece(
    key: ResponseKey,
    from: number,
    after: number,
    part: ResponsePart = 'body',
  ): Promise<BodyPiece | null> {
    const body = this.#index.has(key, after) ? this.#texts.get(key.id)?.[part] : undefined;
    if (body === undefined) return null;
    return { text: pieceOf(body.subarray(from, from + responsePieceBytes)), bytes: body.length };
  }

  async readHead(key: ResponseKey, after: number): Promise<string | null> {
    return this.#index.chain(key, after).length === 0 ? null : (this.#texts.get(key.id)?.head ?? '');
  }

  async readMessages(key: ResponseKey, after: number): Promise<readonly Message[] | null> {
    const chain = this.#index.chain(key, after).toReversed();
    if (chain.length === 0) return null;
    return chain.flatMap((id) => JSON.parse(String(this.#texts.get(id)?.messages ?? '[]')) as Message[]);
  }

  async removeResponse(key: ResponseKey): Promise<boolean> {
    const removed = this.#index.removeHead(key);
    this.#drop(removed ?? []);
    return removed !== null;
  }

  /** Removes the responses of a client. Returns their number. */
  removeOf(client: ClientText): number {
    const removed = this.#index.removeOf(client);
    this.#drop(removed);
    return removed.length;
  }

  async expireResponses(after: number): Promise<void> {
    this.#drop(this.#index.expireHeads(after));
  }

  #drop(ids: readonly string[]): void {
    for (const id of ids) this.#texts.delete(id);
  }
}

function thoughtLength({ end }: EndedJob): number {
  const thoughts = end.outcome === 'ok' ? (end.thoughts ?? []) : [];
  return thoughts.reduce((sum, { text, redacted = '' }) => sum + text.length + redacted.length, 0);
}
