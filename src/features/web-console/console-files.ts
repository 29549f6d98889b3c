import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { notFound, sendTyped } from '../../worker/http/responses.js';

const folder = join(__dirname, '..', '..', 'console');

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.woff2': 'font/woff2',
};

/** Returns the encoding by which a file becomes a string and bytes again. */
function encodingOf(path: string): 'latin1' | 'utf8' {
  return extname(path) === '.woff2' ? 'latin1' : 'utf8';
}

/** Allows only files of this service, no inline scripts or styles. `data:` is for images that a user attaches. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'Content-Security-Policy': contentSecurityPolicy,
  'Referrer-Policy': 'no-referrer',
} as const;

const compress = promisify(gzip);

/** A changed file changes the hash in all paths, so the content of a path never changes. */
const forGood = 'public, max-age=31536000, immutable';
const hashLength = 16;
/** Matches the hash of any version: a page that was opened before an update has an older one. */
const editionPrefix = new RegExp(`^/[0-9a-f]{${hashLength}}(?=/)`);

interface ConsoleFile {
  readonly type: string;
  readonly content: Buffer;
  /** Content as gzip. Compression reveals nothing, because the files contain no secrets. */
  readonly compressed: Buffer;
}

/** Files that are served below /console. */
interface Edition {
  readonly page: ConsoleFile;
  /** Files by their path below `folder`, whose name is the hash. */
  readonly files: ReadonlyMap<string, ConsoleFile>;
  readonly folder: string;
}

/**
 * Serves the page of the console and its files. The files are read once, during this call; no other file can be
 * requested.
 */
export function consoleFiles(): AsyncHandler {
  const reading = readEdition();
  reading.catch(() => {}); // requests for the files report the failure
  return async (req, res, next) => {
    const edition = await reading;
    const path = req.path.slice('/console'.length); // raw path: escapes and dots are not resolved
    const file = fileAt(edition, path);
    if (file === undefined) return notFound(req, res, next);
    res.set(headers).vary('Accept-Encoding');
    res.locals.isFile = file !== edition.page;
    if (path.startsWith(`${edition.folder}/`)) res.set('Cache-Control', forGood);
    const takesGzip = req.acceptsEncodings('gzip') === 'gzip';
    if (takesGzip) res.set('Content-Encoding', 'gzip');
    sendTyped(res, file.type, takesGzip ? file.compressed : file.content);
  };
}

/**
 * Returns the file of a path, also for the hash of another version, because hosts behind one front may differ during an
 * update. The client must not store such a file.
 */
function fileAt({ page, files }: Edition, path: string): ConsoleFile | undefined {
  if (path === '/' || path === '/index.html') return page;
  return editionPrefix.test(path) ? files.get(path.replace(editionPrefix, '')) : undefined;
}

async function readEdition(): Promise<Edition> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const read = found
    .filter((entry) => entry.isFile() && extname(entry.name) in types)
    .map((entry) => join(entry.parentPath, entry.name))
    .map(async (file) => [`/${relative(folder, file)}`, await readFile(file, encodingOf(file))] as const);
  const { [pagePath]: page, ...files } = Object.fromEntries(await Promise.all(read));
  if (page === undefined) throw new Error('the console has no page');
  const hash = hashOf(files);
  const made = new Map<string, ConsoleFile>();
  // Compressing all files at the same time would need 8 MB.
  for (const [path, text] of Object.entries(files)) made.set(path, await fileOf(path, text));
  return {
    page: await fileOf(
      pagePath,
      page.replace(reference, (_, name: string, path: string) => `${name}="${hash}/${path}"`),
    ),
    files: made,
    folder: `/${hash}`,
  };
}

const pagePath = '/index.html';

/** Matches a reference from the page to a file of the console. */
const reference = /\b(href|src)="(\w+\.\w+)"/g;

/** Returns one hash of all files, because they refer to each other. */
function hashOf(files: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, hashLength);
}

async function fileOf(path: string, text: string): Promise<ConsoleFile> {
  const content = Buffer.from(text, encodingOf(path));
  return { type: types[extname(path)] as string, content, compressed: await compress(content) };
}
