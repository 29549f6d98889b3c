import { setTimeout as sleep } from 'node:timers/promises';
import type { Asker, Send } from './asker.js';
import { RawConnection, request } from './raw-http.js';

const patienceMs = 60_000;
const file = 'Content-Disposition: form-data; name="file"; filename="a"';
const purpose = '--edge\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n';

/** Sends a form in pieces, with a pause before each but the first. */
function upload({ url, headers }: Asker, pieces: readonly Buffer[], pauseMs = 0, length = totalOf(pieces)): Send {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const type = 'Content-Type: multipart/form-data; boundary=edge';
  const head = request('POST /v1/files', [type, `Content-Length: ${length}`, 'Connection: close', ...fields]);
  return async (signal) => {
    using connection = await RawConnection.open(Number(new URL(url).port));
    connection.send(head);
    for (const [index, piece] of pieces.entries()) {
      if (index > 0 && pauseMs > 0) await sleep(pauseMs);
      if (signal?.aborted) return 0;
      connection.send(piece);
    }
    const answer = connection.answer({ withinMs: patienceMs });
    const left = new Promise<null>((resolve) => signal?.addEventListener('abort', () => resolve(null)));
    return (await Promise.race([answer, left]))?.status ?? 0;
  };
}

function totalOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Returns a form with this file. */
function formWith(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`--edge\r\n${file}\r\n\r\n`), bytes, Buffer.from(`\r\n${purpose}--edge--\r\n`)]);
}

function piecesOf(bytes: Buffer, length: number): Buffer[] {
  const count = Math.ceil(bytes.length / length);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * length, (index + 1) * length));
}

const parts = (unit: string) => (asker: Asker) => Promise.resolve(upload(asker, [Buffer.alloc(10_000_000, unit)]));

/** Returns requests with a file that flows for this time. */
export function flowingUpload(asker: Asker, forMs: number, pauseMs = 100): Send {
  const pieces = piecesOf(formWith(Buffer.alloc((forMs / pauseMs) * 2000, 'x')), 2000);
  return upload(asker, pieces, pauseMs);
}

/** Returns requests with a file that stops after its first kilobytes. */
export function silentUpload(asker: Asker): Send {
  return upload(asker, [formWith(Buffer.alloc(100_000, 'x')).subarray(0, 50_000)], 0, 200_000);
}

/** Uploads that could take the time or the memory of a worker. */
export const hostileUploads = {
  'forms with a million empty parts': parts('--edge\r\n\r\n\r\n'),
  'forms with a million parts without headers': parts('\r\n--edge'),
  'forms with 160,000 fields': parts('--edge\r\nContent-Disposition: form-data; name="f"\r\n\r\n\r\n'),
  'forms with a header of 10 MB': (asker: Asker) =>
    Promise.resolve(upload(asker, [formWith(Buffer.alloc(0)).subarray(0, 60), Buffer.alloc(10_000_000, 'n')])),
  'forms in pieces of one byte': async (asker: Asker) =>
    upload(asker, piecesOf(formWith(Buffer.alloc(20_000, 'x')), 1)),
  'uploads that flow slowly': async (asker: Asker) => flowingUpload(asker, 3000),
  'uploads that fall silent': async (asker: Asker) => silentUpload(asker),
} as const;
