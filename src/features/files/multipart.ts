import { Transform } from 'node:stream';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { withResolvers } from '../../shared/async.js';
import { cancelled, invalid } from '../../shared/errors.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import { expectsContinue, PacedReading, type ReadingPace } from '../../worker/http/body.js';
import type { Reply } from '../../worker/http/exchange.js';
import { answerRefusal, refusals } from '../../worker/http/refusal.js';
import { FormParts } from './form-parts.js';

/** Time in which an upload must send `leastBytes`. Otherwise it is given up. */
const silenceMs = 30_000;
const leastBytes = 1024;
const maxFields = 16;
const maxFieldBytes = 1024;
const maxHeaderBytes = 8 * 1024;
const maxNameLength = 255;
/** Maximum of bytes of a form that are not part of its file. */
const maxOtherBytes = 256 * 1024;
const tooManyParts = `must have one file and at most ${maxFields} other fields`;

/** Fields of a form. */
export interface FormFields {
  readonly known: ReadonlyMap<string, string>;
  /** Names of the other fields. */
  readonly unknown: readonly string[];
}

/** File of a form. */
export interface FormFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: AsyncIterable<Buffer>;
}

/**
 * Reads a form with one file in the field `file`. `take` gets the file, and reads all of its bytes at its own speed.
 * Resolves with the other fields, which may follow the file. `knownFields`: the names of the fields that have a
 * meaning. Rejects with `validation_error`.
 */
export async function readForm(
  req: Request,
  res: Reply,
  pace: ReadingPace,
  knownFields: ReadonlySet<string>,
  take: (file: FormFile) => Promise<void>,
): Promise<FormFields> {
  const boundary = boundaryOf(req);
  const form = formOf(boundary);
  const parts = new FormParts(boundary, maxFields + 1);
  const { promise: failed, reject } = withResolvers<never>();
  failed.catch(() => {}); // the form may have ended before
  let fileStream: BusboyFileStream | null = null;
  let taking: Promise<void> | null = null;
  const refuse = () => reject(invalid('body', 'must be valid multipart/form-data'));
  const fields = collectFields(form, knownFields, reject);
  form.on('file', (field: string, stream: BusboyFileStream, name: string, _encoding: string, mediaType: string) => {
    stream.on('error', () => {
      refuse();
      stream.destroy(); // ends the reading of `take`, which may only begin later
    });
    if (field !== 'file') return fields.addFile(field, stream);
    if (taking !== null) {
      stream.resume();
      return reject(invalid('file', 'must be one file'));
    }
    fileStream = stream;
    taking = take({ name: fileName(parts.extendedName ?? withoutEscapes(name)), mediaType, bytes: stream });
    taking.catch(reject);
  });
  const whole = new Promise<void>((resolve) => void form.once('finish', resolve));
  form.on('error', refuse);
  using _ = follow(req, res, pace, reject);
  if (expectsContinue(req)) res.writeContinue();
  const counted = countedParts(parts, () => fileStream?.bytesRead ?? 0).on('error', reject);
  req.pipe(counted).pipe(form);
  try {
    await Promise.race([whole, failed]);
    if (taking === null) throw invalid('file', 'must be sent, as a file with a name');
    await Promise.race([taking, failed]);
    return { known: fields.known, unknown: [...fields.unknown] };
  } finally {
    req.unpipe(counted);
    req.resume(); // bytes that still arrive are dropped
    counted.destroy();
    form.destroy();
  }
}

/** Returns the fields of a form, which arrive later. Calls `reject` if one is faulty, or if they are too many. */
function collectFields(form: BusboyInstance, knownFields: ReadonlySet<string>, reject: (error: Error) => void) {
  const known = new Map<string, string>();
  const unknown = new Set<string>();
  const add = (field: string | undefined, value: string, isNameCut: boolean, isCut: boolean) => {
    if (field === undefined) return reject(invalid('body', 'must have a name for each field'));
    if (!knownFields.has(field)) return void unknown.add(field);
    if (isNameCut || isCut) return reject(invalid(nameOf(field), `must have at most ${maxFieldBytes} bytes`));
    if (known.has(field)) return reject(invalid(nameOf(field), 'must be sent once'));
    known.set(field, value);
  };
  form.on('field', add);
  /** Adds a field that has a file name, as a Blob in a form of a browser has. */
  const addFile = (field: string | undefined, stream: BusboyFileStream) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    stream.on('data', (piece: Buffer) => {
      if (bytes <= maxFieldBytes) pieces.push(piece);
      bytes += piece.length;
    });
    stream.once('end', () => add(field, String(Buffer.concat(pieces)), false, bytes > maxFieldBytes));
  };
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
    form.on(limit, () => reject(invalid('body', tooManyParts)));
  return { known, unknown, addFile };
}

/** Returns the boundary of a form, without quotes. Throws `validation_error` if it has none, or two. */
function boundaryOf(req: Request): string {
  const type = req.get('content-type') ?? '';
  const [found, ...others] = type.matchAll(/;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;"]*))/gi);
  const boundary = found?.[1] ?? found?.[2] ?? '';
  const isOne = others.length === 0 && /^multipart\/form-data\s*;/i.test(type);
  // These are the characters of a boundary in RFC 2046.
  if (isOne && /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/.test(boundary)) return boundary;
  throw invalid('Content-Type', 'must be multipart/form-data with a boundary');
}

function formOf(boundary: string): BusboyInstance {
  const counts = { parts: maxFields + 1, fields: maxFields, files: maxFields + 1, headerPairs: 20 };
  const sizes = { fieldSize: maxFieldBytes, fieldNameSize: 100, headerSize: maxHeaderBytes };
  const type = `multipart/form-data; boundary="${boundary}"`;
  return new Busboy({ headers: { 'content-type': type }, limits: { ...counts, ...sizes } });
}

/** Returns a stream that passes a form on, and fails when it has too many parts, or too many bytes beside its file. */
function countedParts(parts: FormParts, fileBytes: () => number): Transform {
  let bytes = 0;
  return new Transform({
    transform: (piece: Buffer, _, done) => {
      bytes += piece.length;
      if (!parts.addPiece(piece)) return done(invalid('body', tooManyParts));
      // The parser may still have pieces that this stream has passed on.
      if (bytes - fileBytes() > maxOtherBytes + 2 * piece.length)
        return done(invalid('body', `must have at most ${maxOtherBytes / 1024} KB beside its file`));
      done(null, piece);
    },
  });
}

/**
 * Limits the pace of small pieces, and rejects if the client is silent or disconnects. While it is not silent, its
 * upload may take any time.
 */
function follow(req: Request, res: Reply, pace: ReadingPace, reject: (error: Error) => void): Disposable {
  const reading = new PacedReading(req, pace);
  const { clock } = pace;
  let arrivedMs = clock.monotonicMs();
  let bytes = 0;
  res.locals.isUpload = true;
  const onData = (piece: Buffer) => {
    bytes += piece.length;
    reading.countPiece(piece);
  };
  const stopTimer = clock.every(1000, () => {
    const nowMs = clock.monotonicMs();
    if (req.isPaused() || bytes >= leastBytes) {
      arrivedMs = nowMs;
      bytes = 0;
    }
    if (nowMs - arrivedMs < silenceMs) return;
    if (!res.headersSent) answerRefusal(res, refusals.tooSlow);
    reject(cancelled('the body did not arrive in time'));
  });
  const onClose = () => req.readableEnded || reject(cancelled('the client has disconnected'));
  req.on('data', onData).once('error', onClose).once('close', onClose);
  return {
    [Symbol.dispose]: () => {
      stopTimer();
      req.off('data', onData);
      res.locals.isUpload = false;
    },
  };
}

/** Returns the name of a field for an error message. */
function nameOf(field: string | undefined): string {
  return /^[\w[\]]{1,64}$/.test(field ?? '') ? String(field) : 'form';
}

const escapes: Readonly<Record<string, string>> = { '%22': '"', '%0D': '\r', '%0A': '\n' };

/** Decodes the three characters that a form of a browser escapes in a name, and no others. */
function withoutEscapes(name: string | undefined): string | undefined {
  return name?.replace(/%(?:22|0D|0A)/g, (code) => escapes[code] ?? code);
}

/** Returns the name of a file without folders and control characters. */
function fileName(name: string | undefined): string {
  const plain = wellFormed(name ?? '')
    .replace(/^.*[/\\]/s, '')
    .replace(/[\p{Cc}\p{Cf}]/gu, ' ')
    .slice(0, maxNameLength)
    .trim();
  return ['', '.', '..'].includes(plain) ? 'file' : plain;
}
