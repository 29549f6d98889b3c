import { createHash } from 'node:crypto';
import type { PrimaryCore } from '../../primary/features/feature.js';
import { type ClientText, holderOf, optionHolder, readClientId } from '../../shared/client.js';
import { dayText } from '../../shared/config/key-values.js';
import { storeUnavailable } from '../../shared/errors.js';
import { filePurposes } from '../../shared/files.js';
import type { TranscriptOrder } from '../../shared/ipc/protocol.js';
import { piecesOf } from '../../shared/text/well-formed.js';
import type { StoredPage } from '../stores/contract/files.js';
import type { StoringCore } from '../stores/contract/full-store.js';
import type { UsagePart } from '../usage/primary.js';
import type { UsageGroup } from '../usage/report-form.js';

const atOnce = 100;
/** Jobs read at once: each may have long thoughts. */
const jobsAtOnce = 10;
/** Largest number of rows of one table: more than any has. */
const maxRows = 100_000;
/** UTF-16 units of a request in one line. */
const pieceUnits = 64 * 1024;
const expiredNever = 0;

export type ExportCore = Pick<PrimaryCore, 'conversations' | 'recordsOf'> & {
  readonly usage: Pick<UsagePart, 'report'>;
  readonly store: Pick<StoringCore['store'], 'answers' | 'tables' | 'jobs' | 'files' | 'responses' | 'upkeep'>;
  readonly clients: Pick<PrimaryCore['clients'], 'keyClients' | 'ownOptionsOf' | 'countedGroupsOf'>;
  readonly config: Pick<PrimaryCore['config'], 'readBack' | 'keyOptions'>;
};

/** Line of an export: an object with its kind. */
interface ExportLine {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/** Numbers of exported things by kind, and the digest of all lines. */
export interface ExportEnd {
  readonly counts: Readonly<Record<string, number>>;
  readonly sha256: string;
}

/**
 * Yields everything that the service has of a client, as lines of JSON, piece by piece: for a person, also that of the
 * own keys. Calls `onEnd` before the last line, which has its numbers and the SHA-256 of all lines before it.
 */
export async function* exportOf(
  core: ExportCore,
  owner: ClientText,
  at: string,
  onEnd: (end: ExportEnd) => Promise<void>,
): AsyncGenerator<string> {
  const hash = createHash('sha256');
  const counts: Record<string, number> = {};
  const written = (line: ExportLine) => {
    const text = `${JSON.stringify(line)}\n`;
    hash.update(text);
    return text;
  };
  yield written({ kind: 'export', version: 1, client: owner, at });
  for (const client of await clientsOf(core, owner)) {
    for (const source of [conversations, jobs, answers, responses, filesAndBatches, rows, usageRows, keys]) {
      for await (const { kind, ...fields } of source(core, client)) {
        const isData = kind.endsWith('_data');
        if (!isData) counts[kind] = (counts[kind] ?? 0) + 1;
        yield written(isData ? { kind, ...fields } : { kind, client, ...fields });
      }
    }
  }
  const end = { counts, sha256: hash.digest('hex') };
  await onEnd(end);
  yield `${JSON.stringify({ kind: 'end', ...end })}\n`;
}

/** Returns a client and, for a person, the own keys: also removed ones that have left data. */
async function clientsOf({ clients, store }: ExportCore, owner: ClientText): Promise<ReadonlySet<ClientText>> {
  if (readClientId(owner).kind !== 'sso') return new Set([owner]);
  const isOwnKey = (client: ClientText) => holderOf(client) === owner && optionHolder(client) === client;
  const known = [...clients.keyClients, ...(await store.upkeep.clientsWith(owner))];
  return new Set([owner, ...known.filter(isOwnKey)]);
}

async function* conversations(
  { conversations: all, config }: ExportCore,
  client: ClientText,
): AsyncGenerator<ExportLine> {
  if (!config.readBack) return; // clients may not read them back
  for (let before: number | null = null; ; ) {
    const page = await all.listConversations(client, before, atOnce, null);
    for (const { activity: _, ...conversation } of page.conversations) {
      yield { kind: 'conversation', ...conversation };
      let from: TranscriptOrder['from'] = null;
      do {
        const { parts, next } = await all.readTranscript({ id: conversation.id, client, withImages: true, from });
        for (const part of parts) yield { kind: 'conversation_data', id: conversation.id, ...part };
        from = next;
      } while (from !== null);
    }
    if (page.next === null) return;
    before = page.next;
  }
}

/** Yields the background jobs of a client: the requests of those that wait, and the answers of those that have ended. */
async function* jobs({ store: { jobs: all } }: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  for (let before: number | null = null; ; ) {
    const page = await all.listJobs({ client, status: null, before, limit: jobsAtOnce });
    for (const job of page.jobs) {
      yield { kind: 'job', ...job };
      const request = job.status === 'queued' ? await all.request(job.id) : null;
      const requestText = request === null ? '' : JSON.stringify(request);
      for (const piece of piecesOf(requestText, pieceUnits)) yield { kind: 'job_data', id: job.id, request: piece };
      for (let at = 0; ; ) {
        const text = await all.readText(job.id, at);
        if (text === '') break;
        yield { kind: 'job_data', id: job.id, text };
        at += text.length;
      }
    }
    if (page.next === null) return;
    before = page.next;
  }
}

/** Yields the recorded answers, which repeated requests get. */
async function* answers({ store }: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  for (const id of await store.upkeep.idsOf(client, 'answer')) {
    let at = 0;
    for (let isFirst = true; ; isFirst = false) {
      const answer = await store.answers.readById(client, id, at);
      if (answer === null) break; // expired meanwhile
      const { begin, ...head } = answer;
      if (isFirst) yield { kind: 'recorded_answer', id, ...head };
      if (begin === '') break;
      yield { kind: 'recorded_answer_data', id, text: begin };
      at += Buffer.byteLength(begin);
    }
  }
}

/** Yields the responses of a client, each with its own messages and its body. */
async function* responses({ store }: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  for (const id of await store.upkeep.idsOf(client, 'response')) {
    yield { kind: 'response', id };
    for (const part of ['messages', 'body'] as const) {
      for (let at = 0; ; ) {
        const piece = await store.responses.readPiece({ id, client }, at, expiredNever, part);
        if (piece === null || piece.text === '') break;
        yield { kind: 'response_data', id, [part === 'body' ? 'text' : part]: piece.text };
        at += Buffer.byteLength(piece.text);
      }
    }
  }
}

/** Yields the files of a client and its batches, also the results of those that run, which are no whole files yet. */
async function* filesAndBatches({ store: { files: all } }: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  const order = { client, limit: atOnce, isAscending: true };
  const read = new Set<string>();
  for await (const stored of entriesOf((after) => all.listFiles({ ...order, after }, filePurposes))) {
    const { holder: _, isWhole: __, ...file } = stored;
    read.add(file.id);
    yield { kind: 'file', ...file };
    yield* contentOf(all, file.id);
  }
  for await (const stored of entriesOf((after) => all.listBatches({ ...order, after }, null))) {
    const { holder: _, ...batch } = stored;
    yield { kind: 'batch', ...batch };
    for (const id of [batch.outputFile, batch.errorFile]) if (id !== null && !read.has(id)) yield* contentOf(all, id);
  }
}

async function* contentOf(all: ExportCore['store']['files'], id: string): AsyncGenerator<ExportLine> {
  for (let at = 0; ; ) {
    const piece = await all.readPiece(id, at);
    if (piece.length === 0) return; // its end, or removed meanwhile
    yield { kind: 'file_data', id, base64: piece.toString('base64') };
    at += piece.length;
  }
}

/** Yields the entries of all pages. Rejects if an entry was removed after which the next page begins. */
async function* entriesOf<T extends { readonly id: string }>(
  pageAfter: (id: string | null) => Promise<StoredPage<T>>,
): AsyncGenerator<T> {
  for (let after: string | null = null; ; ) {
    const { items, hasMore }: StoredPage<T> = await pageAfter(after);
    yield* items;
    if (after !== null && items.length === 0)
      throw storeUnavailable('files or batches were removed during the export: repeat it');
    after = items.at(-1)?.id ?? null;
    if (!hasMore || after === null) return;
  }
}

/** Yields the rows of tables that features have declared. */
async function* rows({ store }: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  for (const [name, table] of store.tables) {
    for (const row of await table.listRows(maxRows)) if (row.client === client) yield { kind: name, ...row };
  }
}

/** Groups of the two reports: the days that are stored, and the sums of all months. */
const usageGroups: readonly (readonly UsageGroup[])[] = [
  ['day', 'model', 'account'],
  ['month', 'model', 'account'],
];

async function* usageRows({ usage }: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  for (const groups of usageGroups) {
    const report = await usage.report(client, { since: null, until: null, groups });
    for (const row of report) yield { ...row, kind: 'usage' };
  }
}

/** Yields what the client may do, the last day of its use, and the keys that it has made or lent, without secrets. */
async function* keys(core: ExportCore, client: ClientText): AsyncGenerator<ExportLine> {
  const { clients, config, usage, recordsOf } = core;
  const options = clients.ownOptionsOf(client);
  const days = await usage.report(client, { since: null, until: null, groups: ['day'] });
  yield {
    ...{ kind: 'access', groups: clients.countedGroupsOf(client), options: config.keyOptions.viewOf(options) },
    previous_expires: options.previous && dayText(options.previous.expiresAt),
    last_used: days.at(-1)?.day ?? null,
  };
  for (const [kind, records] of Object.entries(recordsOf(client))) for (const each of records) yield { ...each, kind };
}
