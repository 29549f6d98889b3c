import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { withResolvers } from '../../shared/async.js';
import { cancelled, invalid } from '../../shared/errors.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import { expectsContinue, PacedReading, type ReadingPace } from './body.js';
import type { Reply } from './exchange.js';
import { answerRefusal, refusals } from './refusal.js';

/** Silence after which an upload is given up. */
const silenceMs = 30_000;
const maxFields = 16;
const maxFieldBytes = 1024;
const maxNameLength = 255;

/** File of a form. */
export interface FormFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: AsyncIterable<Buffer>;
}

/**
 * Reads a form with one file in the field `file`. `take` gets the file, and reads all of its bytes at its own speed.
 * Resolves with the other fields, which may follow the file. Rejects with `validation_error`.
 */
export async function readForm(
  req: Request,
  res: Reply,
  pace: ReadingPace,
  take: (file: FormFile) => Promise<void>,
): Promise<ReadonlyMap<string, string>> {
  const form = formOf(req);
  const { promise: failed, reject } = withResolvers<never>();
  failed.catch(() => {}); // the form may have ended before
  const fields = new Map<string, string>();
  let taking: Promise<void> | null = null;
  const refuse = () => reject(invalid('body', 'must be valid multipart/form-data'));
  form.on('file', (field: string, stream: BusboyFileStream, name: string, _encoding: string, mediaType: string) => {
    stream.on('error', () => {
      refuse();
      stream.destroy(); // ends the reading of `take`, which may only begin later
    });
    if (field !== 'file' || taking !== null) {
      stream.resume();
      return reject(invalid(nameOf(field), 'must be one file, in the field file'));
    }
    taking = take({ name: fileName(name), mediaType, bytes: stream });
    taking.catch(reject);
  });
  form.on('field', (field: string, value: string, isNameCut: boolean, isCut: boolean) => {
    if (isNameCut || isCut) return reject(invalid(nameOf(field), `must have at most ${maxFieldBytes} bytes`));
    if (fields.has(field)) return reject(invalid(nameOf(field), 'must be sent once'));
    fields.set(field, value);
  });
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
    form.on(limit, () => reject(invalid('body', `must have one file and at most ${maxFields} other fields`)));
  const whole = new Promise<void>((resolve) => void form.once('finish', resolve));
  form.on('error', refuse);
  using _ = follow(req, res, pace, reject);
  if (expectsContinue(req)) res.writeContinue();
  req.pipe(form);
  try {
    await Promise.race([whole, failed]);
    if (taking === null) throw invalid('file', 'must be sent, as a file with a name');
    await Promise.race([taking, failed]);
    return fields;
  } finally {
    req.unpipe(form);
    req.resume(); // bytes that still arrive are dropped
    form.destroy();
  }
}

function formOf(req: Request): BusboyInstance {
  const type = req.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type))
    throw invalid('Content-Type', 'must be multipart/form-data with a boundary');
  const limits = { fields: maxFields, fieldSize: maxFieldBytes, fieldNameSize: 100, files: 2, headerPairs: 20 };
  try {
    return new Busboy({ headers: { ...req.headers, 'content-type': type }, limits });
  } catch {
    throw invalid('Content-Type', 'must be multipart/form-data with a boundary');
  }
}

/** Limits the pace of small pieces, and rejects if the client is silent or disconnects. */
function follow(req: Request, res: Reply, pace: ReadingPace, reject: (error: Error) => void): Disposable {
  const reading = new PacedReading(req, pace);
  const { clock } = pace;
  let arrivedMs = clock.monotonicMs();
  const onData = (piece: Buffer) => {
    arrivedMs = clock.monotonicMs();
    reading.countPiece(piece);
  };
  const stopTimer = clock.every(1000, () => {
    if (req.isPaused() || clock.monotonicMs() - arrivedMs < silenceMs) return;
    if (!res.headersSent) answerRefusal(res, refusals.tooSlow);
    reject(cancelled('the body did not arrive in time'));
  });
  const onClose = () => req.readableEnded || reject(cancelled('the client has disconnected'));
  req.on('data', onData).once('error', onClose).once('close', onClose);
  return { [Symbol.dispose]: stopTimer };
}

/** Returns the name of a field for an error message. */
function nameOf(field: string | undefined): string {
  return /^[\w[\]]{1,64}$/.test(field ?? '') ? String(field) : 'form';
}

/** Returns the name of a file without folders and control characters. */
function fileName(name: string | undefined): string {
  const plain = wellFormed(name ?? '')
    .replace(/[\p{Cc}\p{Cf}]/gu, ' ')
    .slice(0, maxNameLength)
    .trim();
  return plain === '' ? 'file' : plain;
}
