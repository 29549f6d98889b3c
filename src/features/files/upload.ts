import type { Request } from 'express';
import type { ClientText } from '../../shared/client.js';
import { invalid } from '../../shared/errors.js';
import { type FilePurpose, type FileView, uploadPurposes } from '../../shared/files.js';
import { piecesOf } from '../../shared/text/well-formed.js';
import type { ReadingPace } from '../../worker/http/body.js';
import type { Reply } from '../../worker/http/exchange.js';
import { LineCounter } from './line-counter.js';
import { readForm } from './multipart.js';
import type { FileCalls } from './shared.js';

/** Bytes that are sent to the primary at once. */
const pieceBytes = 192 * 1024;
const lineEnd = Buffer.from('\n');
const minTtlSeconds = 3600;
const maxTtlSeconds = 30 * 86_400;

/** Stored file, and the fields of its form that have no meaning here. */
interface ReceivedFile {
  readonly file: FileView;
  readonly unknown: readonly string[];
}

/** Receives a file and stores it. A file whose upload fails is removed. `usualPurpose`: null if a purpose must be sent. */
export async function receiveFile(
  primary: FileCalls,
  req: Request,
  res: Reply,
  pace: ReadingPace,
  usualPurpose: FilePurpose | null,
): Promise<ReceivedFile> {
  const { client } = res.locals;
  const lines = new LineCounter();
  /** Id of the file, if its part of the form has begun. */
  const ids: Promise<string>[] = [];
  try {
    const { known, unknown } = await readForm(req, res, pace, knownFields, async ({ name, mediaType, bytes }) => {
      // The purpose may follow the file.
      const created = primary.call('createFile', { client, purpose: 'user_data', name, mediaType });
      ids.push(created.then(({ id }) => id));
      const { id } = await created;
      for await (const piece of gathered(bytes)) {
        lines.addBytes(piece);
        await primary.call('appendFile', { id, client, data: piece.toString('base64') });
      }
    });
    const purpose = purposeIn(known, usualPurpose);
    const whole = { purpose, lines: purpose === 'batch' ? lines.total() : 0, ttlMs: ttlIn(known) };
    const [id = ''] = await Promise.all(ids);
    return { file: await primary.call('completeFile', { id, client, ...whole }), unknown };
  } catch (error) {
    const remove = (id: string) => primary.call('deleteFile', { id, client });
    for (const created of ids) created.then(remove).catch(() => {}); // otherwise the file expires
    throw error;
  }
}

/** Adds a file whose bytes this worker has. */
export async function storeFile(
  primary: FileCalls,
  { client, purpose, name }: { readonly client: ClientText; readonly purpose: FilePurpose; readonly name: string },
  lines: Iterable<string>,
): Promise<string> {
  const { id } = await primary.call('createFile', { client, purpose, name, mediaType: 'application/jsonl' });
  let count = 0;
  const encoded = function* () {
    for (const line of lines) {
      count++;
      for (const piece of piecesOf(line, pieceBytes)) yield Buffer.from(piece); // a line may be as long as a body
      yield lineEnd;
    }
  };
  try {
    for await (const piece of gathered(encoded()))
      await primary.call('appendFile', { id, client, data: piece.toString('base64') });
    await primary.call('completeFile', { id, client, purpose, lines: count, ttlMs: null });
    return id;
  } catch (error) {
    primary.call('deleteFile', { id, client }).catch(() => {});
    throw error;
  }
}

/** Joins small pieces and splits large ones. */
async function* gathered(bytes: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of bytes) {
    pieces.push(piece);
    length += piece.length;
    if (length < pieceBytes) continue;
    const joined = Buffer.concat(pieces);
    const end = length - (length % pieceBytes);
    for (let from = 0; from < end; from += pieceBytes) yield joined.subarray(from, from + pieceBytes);
    pieces = [joined.subarray(end)];
    length -= end;
  }
  if (length > 0) yield Buffer.concat(pieces);
}

function purposeIn(fields: ReadonlyMap<string, string>, usual: FilePurpose | null): FilePurpose {
  const sent = fields.get('purpose');
  if (sent === undefined && usual !== null) return usual;
  const purpose = uploadPurposes.find((known) => known === sent);
  if (purpose === undefined) throw invalid('purpose', `must be ${uploadPurposes.join(' or ')}`);
  return purpose;
}

const [anchorField, secondsField] = ['expires_after[anchor]', 'expires_after[seconds]'] as const;
/** Name of the field of Anthropic's API with the seconds until the file expires. */
const anthropicField = 'expires_in_seconds';
const knownFields: ReadonlySet<string> = new Set(['purpose', anchorField, secondsField, anthropicField]);

/** Returns the requested time until the file expires; null if the client requests no time. */
function ttlIn(fields: ReadonlyMap<string, string>): number | null {
  const [anchor, after, inSeconds] = [fields.get(anchorField), fields.get(secondsField), fields.get(anthropicField)];
  if (anchor === undefined && after === undefined && inSeconds === undefined) return null;
  if (inSeconds === undefined && anchor !== 'created_at') throw invalid(anchorField, 'must be created_at');
  const [seconds, field] = inSeconds === undefined ? [after, secondsField] : [inSeconds, anthropicField];
  const isNumber =
    /^\d{1,8}$/.test(seconds ?? '') && Number(seconds) >= minTtlSeconds && Number(seconds) <= maxTtlSeconds;
  if (!isNumber) throw invalid(field, `must be a whole number from ${minTtlSeconds} to ${maxTtlSeconds}`);
  return Number(seconds) * 1000;
}
