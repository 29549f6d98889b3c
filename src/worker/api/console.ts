import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AsyncHandler, Handler } from '../http/exchange.js';
import { notFound, sendTyped } from '../http/responses.js';

const folder = join(__dirname, '..', '..', 'console');

/** Of languages whose code the console shows in colours. */
const grammars = 'bash c cpp csharp css diff go java javascript json php python ruby rust sql typescript xml yaml'
  .split(' ')
  .map((name) => `@highlightjs/cdn-assets/es/languages/${name}.min.js`);

/** What makes a module of a script. */
const endings: Readonly<Record<string, string>> = { 'temml/dist/temml.min.js': '\nexport default temml;\n' };

/** What the pages import by the name of its package: the file that holds it, beside what the package names as its own; null: it is the name. */
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

/** Only files of this service, no inline script and no inline style. `data:` is for images that a user is about to send. */
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

/** The name of a file changes with the content of any: what a browser has under a name holds for good. */
const forGood = 'public, max-age=31536000, immutable';
const hashLength = 16;
/** Of another version, as a page that was opened before an update names it. */
const ofEdition = new RegExp(`^/[0-9a-f]{${hashLength}}(?=/)`);

interface ConsoleFile {
  readonly type: string;
  readonly content: Buffer;
  /** The same for clients that take gzip. It has no secret, so its length may reveal anything. */
  readonly compressed: Buffer;
}

/** What is served below /console. */
interface Edition {
  readonly page: ConsoleFile;
  /** By their path below the folder that is named by the hash. */
  readonly files: ReadonlyMap<string, ConsoleFile>;
  readonly folder: string;
}

/** The page of the console and its files, read when this is called and only then. Nothing else can be had. */
export function consoleFiles(): AsyncHandler {
  const reading = readEdition();
  reading.catch(() => {}); // reported to the clients that ask for them
  return async (req, res, next) => {
    const edition = await reading;
    const file = fileAt(edition, req.path); // as it was sent: no escape and no dot is resolved
    if (file === undefined) return notFound(req, res, next);
    res.set(headers).vary('Accept-Encoding');
    res.locals.isFile = file !== edition.page;
    if (req.path.startsWith(`${edition.folder}/`)) res.set('Cache-Control', forGood);
    const takesGzip = req.acceptsEncodings('gzip') === 'gzip';
    if (takesGzip) res.set('Content-Encoding', 'gzip');
    sendTyped(res, file.type, takesGzip ? file.compressed : file.content);
  };
}

/** Hosts behind one front may have different versions for a while. Each serves its own, and no client may store that. */
function fileAt({ page, files }: Edition, path: string): ConsoleFile | undefined {
  if (path === '/' || path === '/index.html') return page;
  return ofEdition.test(path) ? files.get(path.replace(ofEdition, '')) : undefined;
}

/** Relative, so that it holds behind a proxy that serves this at a path of its own. */
export const redirectToConsole: Handler = (_req, res) => {
  res.writeHead(302, { Location: 'console/', 'Content-Length': 0 }).end();
};

async function readEdition(): Promise<Edition> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const own = found
    .filter((entry) => entry.isFile() && extname(entry.name) in types)
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [`/${relative(folder, file)}`, file] as const);
  const ofPackages = Object.keys(packages).map(
    (name) => [packagePath(name), packageFile(name), endings[name]] as const,
  );
  const read = [...own, ...ofPackages].map(
    async ([path, file, end]) => [path, await readOne(path, file, end)] as const,
  );
  const { [pagePath]: page, ...files } = Object.fromEntries(await Promise.all(read));
  if (page === undefined) throw new Error('the console has no page');
  const hash = hashOf(files);
  const made = new Map<string, ConsoleFile>();
  for (const [path, text] of Object.entries(files)) made.set(path, await fileOf(path, text)); // at once they take 8 MB
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

/** To a file of the console, in its page. */
const reference = /\b(href|src)="(\w+\.\w+)"/g;

/** Of all files together, because they name each other. */
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

/** An import in code as tsc and minifiers write it, of a package that is served. */
const bareImport = new RegExp(
  String.raw`(\b(?:from|import)\s*\(?\s*)(['"])(${Object.keys(packages).join('|')})\2`,
  'g',
);

/** Browsers know no package by its name without an import map, and that would be an inline script. */
function withPaths(code: string, depth: number): string {
  const up = depth === 0 ? './' : '../'.repeat(depth);
  return code
    .replace(bareImport, (_, before: string, quote: string, name: string) => {
      return `${before}${quote}${up}${packagePath(name).slice(1)}${quote}`;
    })
    .replace(/^\/\/# sourceMappingURL=.*$/m, ''); // maps are not served
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
