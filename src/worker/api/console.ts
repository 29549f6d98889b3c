import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AsyncHandler, Handler } from '../http/exchange.js';
import { notFound, sendTyped } from '../http/responses.js';

const folder = join(__dirname, '..', '..', 'console');

/** Grammars of the languages that the console highlights. */
const grammars = 'bash c cpp csharp css diff go java javascript json php python ruby rust sql typescript xml yaml'
  .split(' ')
  .map((name) => `@highlightjs/cdn-assets/es/languages/${name}.min.js`);

/** Text to append to a script that is not a module, to export its value. */
const endings: Readonly<Record<string, string>> = { 'temml/dist/temml.min.js': '\nexport default temml;\n' };

/**
 * Packages that the pages import. Each has the name of its module in the folder of the file that Node resolves, or null
 * if the import names that file.
 */
const packages: Readonly<Record<string, string | null>> = {
  preact: 'preact.mjs',
  'preact/hooks': 'hooks.mjs',
  htm: 'htm.mjs',
  'htm/preact': 'index.mjs',
  marked: 'marked.esm.js',
  '@highlightjs/cdn-assets/es/core.min.js': null,
  ...Object.fromEntries([...grammars, ...Object.keys(endings)].map((name) => [name, null])),
};

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
};

/** Allows only files of this service, no inline scripts or styles. `data:` is for images that a user attaches. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
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
  reading.catch(() => {}); // reported by requests for the files
  return async (req, res, next) => {
    const edition = await reading;
    const file = fileAt(edition, req.path); // raw path: escapes and dots are not resolved
    if (file === undefined) return notFound(req, res, next);
    res.set(headers).vary('Accept-Encoding');
    res.locals.isFile = file !== edition.page;
    if (req.path.startsWith(`${edition.folder}/`)) res.set('Cache-Control', forGood);
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

/** Redirects to a relative URL, which is also correct behind a proxy that adds a path prefix. */
export const redirectToConsole: Handler = (_req, res) => {
  res.writeHead(302, { Location: 'console/', 'Content-Length': 0 }).end();
};

async function readEdition(): Promise<Edition> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const ownAssets = found
    .filter((entry) => entry.isFile() && extname(entry.name) in types)
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [`/${relative(folder, file)}`, file] as const);
  const packageAssets = Object.keys(packages).map(
    (name) => [packagePath(name), packageFile(name), endings[name]] as const,
  );
  const read = [...ownAssets, ...packageAssets].map(
    async ([path, file, end]) => [path, await readOne(path, file, end)] as const,
  );
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

async function readOne(path: string, file: string, ending = ''): Promise<string> {
  const text = (await readFile(file, 'utf8')) + ending;
  return extname(path) === '.mjs' ? withPaths(text, depthOf(path)) : text;
}

async function fileOf(path: string, text: string): Promise<ConsoleFile> {
  const content = Buffer.from(text);
  return { type: types[extname(path)] as string, content, compressed: await compress(content) };
}

/** Matches an import of a served package, as tsc and minifiers write it. */
const bareImport = new RegExp(
  String.raw`(\b(?:from|import)\s*\(?\s*)(['"])(${Object.keys(packages).join('|')})\2`,
  'g',
);

/** Replaces package names by paths. Browsers resolve names only with an import map, which would be an inline script. */
function withPaths(code: string, depth: number): string {
  const up = depth === 0 ? './' : '../'.repeat(depth);
  return code
    .replace(bareImport, (_, before: string, quote: string, name: string) => {
      return `${before}${quote}${up}${packagePath(name).slice(1)}${quote}`;
    })
    .replace(/^\/\/# sourceMappingURL=.*$/m, ''); // source maps are not served
}

function packagePath(name: string): string {
  return `/packages/${name.replace('.min.js', '').replaceAll('/', '-')}.mjs`;
}

function packageFile(name: string): string {
  return join(dirname(require.resolve(name)), packages[name] ?? basename(name));
}

function depthOf(path: string): number {
  return path.split('/').length - 2;
}
