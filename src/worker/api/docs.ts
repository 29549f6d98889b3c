import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';
import { generateHTML, serveWithOptions } from 'swagger-ui-express';
import type { AsyncHandler, Handler } from '../http/exchange.js';
import { sendTyped } from '../http/responses.js';

const folder = join(__dirname, '..', '..', '..', '..', 'docs');
/** Path of the OpenAPI document, a committed file that a test compares with the schemas. */
const documentPath = join(folder, 'openapi.yaml');

/**
 * Serves the OpenAPI document. The file is read once, at the start, because an update may replace the folder of a
 * running service.
 */
export function getOpenApi(): AsyncHandler {
  const document = readFile(documentPath);
  document.catch(() => {}); // reported by requests for the document
  return async (_req, res) => {
    sendTyped(res, 'application/yaml', await document);
  };
}

/** Allows only files of this service and no inline scripts. Swagger UI has inline styles. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Files that Swagger UI's page loads. The package has others, some of them large. */
const files = [
  '/swagger-ui.css',
  '/swagger-ui-bundle.js',
  '/swagger-ui-standalone-preset.js',
  '/swagger-ui-init.js',
  '/favicon-32x32.png',
  '/favicon-16x16.png',
];

/**
 * Headers of conditional requests, which are removed: no response may be stored, so a client has nothing to compare.
 */
const conditionalHeaders = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];

/** Hides Swagger's choice of a server, and increases the contrast of its colours. */
const customCss = `
.back { max-width: 1460px; margin: 0 auto; padding: 20px 20px 0; font-family: sans-serif; font-size: 14px }
.back a { color: #2a66b0 }
.dark-mode .back a { color: #51a8ff }
.dark-mode body { background: #1c2022 }
.swagger-ui .scheme-container .schemes-server-container { display: none !important }
.swagger-ui .info .title small { background: #5b6270 }
.swagger-ui .info .title small.version-stamp { background: #4a6b00 }
html:not(.dark-mode) .swagger-ui .info :is(a, a.link, .link .url) { color: #2a66b0 }
html:not(.dark-mode) .swagger-ui .btn.authorize span { color: #1d7a45 }
.dark-mode .swagger-ui .info :is(a.link, .link .url) { color: #51a8ff }
.dark-mode .swagger-ui .btn.authorize span { color: #3ece90 }
html:not(.dark-mode) .swagger-ui .opblock.opblock-get .opblock-summary-method { background: #2a66b0 }
html:not(.dark-mode) .swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1d7a45 }
html:not(.dark-mode) .swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0b6e5f }
html:not(.dark-mode) .swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b3261e }
`;

interface PathProps {
  readonly text: unknown;
}

/** Part of Swagger UI that a plugin may use. */
interface SwaggerSystem {
  readonly React: { createElement(tag: string, attributes: null, content: unknown): unknown };
}

/**
 * Plugin that shows the path of an operation as text. Swagger UI shows it as a link in a button, and screen readers cannot
 * reach such a link. The page gets the source of this function.
 */
const plainPaths = () => ({
  wrapComponents: {
    DeepLink: (_link: unknown, { React }: SwaggerSystem) => {
      return ({ text }: PathProps) => React.createElement('span', null, text);
    },
  },
});

/** Globals of a browser that the next function uses. */
interface BrowserPage {
  readonly document: {
    readonly documentElement: { readonly classList: { toggle(name: string, isOn: boolean): void } };
  };
  readonly localStorage: { getItem(name: string): string | null };
  matchMedia(query: string): { readonly matches: boolean; addEventListener(name: string, listener: () => void): void };
  addEventListener(name: string, listener: () => void): void;
}

/**
 * Plugin that follows the colours of the system, and the choice that the user has made in the console. It removes
 * Swagger's bar, which would set the colours once. The page gets the source of this function.
 */
const ownColours = () => {
  const page = globalThis as unknown as BrowserPage;
  const system = page.matchMedia('(prefers-color-scheme: dark)');
  const apply = () => {
    const choice = page.localStorage.getItem('prompt-relay-theme');
    const isDark = choice === 'dark' || (choice !== 'light' && system.matches);
    page.document.documentElement.classList.toggle('dark-mode', isDark);
  };
  system.addEventListener('change', apply);
  page.addEventListener('storage', apply);
  apply();
  return { wrapComponents: { Topbar: () => () => null } };
};

/** Serves Swagger UI with all its files. */
export function docsPages(): Router {
  const page = generateHTML(undefined, {
    customSiteTitle: 'prompt-relay',
    swaggerUrl: '../openapi.yaml',
    customCss,
    swaggerOptions: {
      tryItOutEnabled: true,
      validatorUrl: null,
      defaultModelsExpandDepth: 0,
      plugins: [plainPaths, ownColours],
    },
  });
  const secure: Handler = (req, res, next) => {
    for (const name of conditionalHeaders) delete req.headers[name];
    res.set('Content-Security-Policy', contentSecurityPolicy);
    next();
  };
  const router = Router({ strict: true, caseSensitive: true });
  router.use(secure);
  router.get('/', (req, res) => void res.type('html').send(basedOn(page, req.originalUrl)));
  router.get(files, serveFiles());
  router.get('/pages/*page', sendPage);
  return router;
}

/**
 * Adds a relative base URL, because a proxy may add a path prefix, the width of a small screen, and a link to the
 * console.
 */
function basedOn(page: string, url: string): string {
  const base = /^[^?]*\/(\?|$)/.test(url) ? './' : 'docs/';
  return page
    .replace(
      '<head>',
      `<head>\n  <base href="${base}">\n  <meta name="viewport" content="width=device-width, initial-scale=1">`,
    )
    .replace('<body>', '<body>\n<nav class="back" aria-label="Pages"><a href="../console/">← Console</a></nav>');
}

/** Serves a page of the documentation for the console. The page is missing while an update is being installed. */
const sendPage: RequestHandler = async (req, res, next) => {
  const page = [req.params.page].flat().join('/');
  const text = await readPage(page).catch(() => null);
  if (text === null) return next();
  res.type('text/markdown').send(text);
};

/** Pages outside the folder of the documentation. */
const projectPage = /^project\/((?:README|CONTRIBUTING|CHANGELOG|SECURITY|bench\/RESULTS)\.md)$/;

async function readPage(page: string): Promise<string | null> {
  if (/^[\w-]+\.md$/.test(page)) return readFile(join(folder, page), 'utf8');
  const [, path] = projectPage.exec(page) ?? [];
  return path === undefined ? null : readFile(join(folder, '..', path), 'utf8');
}

function serveFiles(): RequestHandler[] {
  const plain = { etag: false, lastModified: false, cacheControl: false, acceptRanges: false };
  return serveWithOptions({ ...plain, index: false, redirect: false });
}
