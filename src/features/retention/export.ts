import { createHash } from 'node:crypto';
import type { PrimaryCore } from '../../primary/features/feature.js';
import { filePurposes } from '../../shared/files.js';
import type { TranscriptOrder } from '../../shared/ipc/protocol.js';

const atOnce = 100;
/** Largest number of rows of one table: more than any has. */
const maxRows = 100_000;

export type ExportCore = Pick<PrimaryCore, 'store' | 'conversations'> & {
  readonly config: Pick<PrimaryCore['config'], 'readBack'>;
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
 * Yields everything that the service has stored of a client, as lines of JSON, piece by piece. Calls `onEnd` before the
 * last line, which has its numbers and the SHA-256 of all lines before it.
 */
export async function* exportOf(
  core: ExportCore,
  client: string,
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
  yield written({ kind: 'export', version: 1, client, at });
  for (const source of [conversations, jobs, responses, files, rows]) {
    for await (const line of source(core, client)) {
      if (!line.kind.endsWith('_data')) counts[line.kind] = (counts[line.kind] ?? 0) + 1;
      yield written(line);
    }
  }
  const end = { counts, sha256: hash.digest('hex') };
  await onEnd(end);
  yield `${JSON.stringify({ kind: 'end', ...end })}\n`;
}

async function* conversations({ conversations: all, config }: ExportCore, client: string): AsyncGenerator<ExportLine> {
  if (!config.readBack) return; // clients may not read them back
  for (let before: number | null = null; ; ) {
    const page = await all.list(client, before, atOnce, null);
    for (const { activity: _, ...conversation } of page.conversations) {
      yield { kind: 'conversation', ...conversation };
      let from: TranscriptOrder['from'] = null;
      do {
        const { parts, next } = await all.read({ id: conversation.id, client, withImages: true, from });
        for (const part of parts) yield { kind: 'conversation_data', id: conversation.id, ...part };
        from = next;
      } while (from !== null);
    }
    if (page.next === null) return;
    before = page.next;
  }
}

async function* jobs({ store: { jobs: all } }: ExportCore, client: string): AsyncGenerator<ExportLine> {
  for (let before: number | null = null; ; ) {
    const page = await all.list({ client, status: null, before, limit: atOnce });
    for (const job of page.jobs) {
      yield { kind: 'job', ...job };
      for (let at = 0; ; ) {
        const text = await all.text(job.id, at);
        if (text === '') break;
        yield { kind: 'job_data', id: job.id, text };
        at += text.length;
      }
    }
    if (page.next === null) return;
    before = page.next;
  }
}

async function* responses({ store }: ExportCore, client: string): AsyncGenerator<ExportLine> {
  for (const id of await store.upkeep.responsesOf(client)) {
    yield { kind: 'response', id };
    for (let at = 0; ; ) {
      const piece = await store.responses.read({ id, client }, at, 0);
      if (piece === null || piece.text === '') break;
      yield { kind: 'response_data', id, text: piece.text };
      at += Buffer.byteLength(piece.text);
    }
  }
}

/** Yields the files of a client, also the results of its batches. */
async function* files({ store: { files: all } }: ExportCore, client: string): AsyncGenerator<ExportLine> {
  for (let after: string | null = null; ; ) {
    const { items, hasMore } = await all.list({ client, after, limit: atOnce, isAscending: true }, filePurposes);
    for (const { holder: _, isWhole: __, ...file } of items) {
      yield { kind: 'file', ...file };
      for (let at = 0; at < file.bytes; ) {
        const piece = await all.read(file.id, at);
        if (piece.length === 0) break; // removed meanwhile
        yield { kind: 'file_data', id: file.id, base64: piece.toString('base64') };
        at += piece.length;
      }
    }
    after = items.at(-1)?.id ?? null;
    if (!hasMore || after === null) return;
  }
}

/** Yields the rows of tables that features have declared. */
async function* rows({ store }: ExportCore, client: string): AsyncGenerator<ExportLine> {
  for (const [name, table] of store.tables) {
    for (const row of await table.list(maxRows)) if (row.client === client) yield { kind: name, ...row };
  }
}
