import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';
import { generateHTML, serveWithOptions } from 'swagger-ui-express';
import type { AsyncHandler, Handler } from '../http/exchange.js';
import { sendTyped } from '../http/responses.js';

const folder = join(__dirname, '..', '..', '..', '..', 'docs');
/** Committed file. A test compares it with the schemas. */
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

/** Hides Swagger's brand and its choice of a server, and increases the contrast of its colours. */
const customCss = `
.swagger-ui :is(.topbar, .scheme-container .schemes-server-container) { display: none !important }
.swagger-ui .info .title small { background: #5b6270 }
.swagger-ui .info .title small.version-stamp { background: #4a6b00 }
.swagger-ui .info :is(a, a.link, .link .url) { color: #2a66b0 }
.swagger-ui .btn.authorize span { color: #1d7a45 }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #2a66b0 }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1d7a45 }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0b6e5f }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b3261e }
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

/** Serves Swagger UI with all its files. */
export function docsPages(): Router {
  const page = generateHTML(undefined, {
    customSiteTitle: 'prompt-relay',
    swaggerUrl: '../openapi.yaml',
    customCss,
    swaggerOptions: { tryItOutEnabled: true, validatorUrl: null, defaultModelsExpandDepth: 0, plugins: [plainPaths] },
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
  router.get('/pages/:page', sendPage);
  return router;
}

/** Adds a relative base URL, because a proxy may add a path prefix, and the width of a small screen. */
function basedOn(page: string, url: string): string {
  const base = /^[^?]*\/(\?|$)/.test(url) ? './' : 'docs/';
  return page.replace(
    '<head>',
    `<head>\n  <base href="${base}">\n  <meta name="viewport" content="width=device-width, initial-scale=1">`,
  );
}

/** Serves a page of the documentation for the console. The page is missing while an update is being installed. */
const sendPage: RequestHandler = async (req, res, next) => {
  const { page } = req.params;
  if (typeof page !== 'string' || !/^[\w-]+\.md$/.test(page)) return next();
  const text = await readFile(join(folder, page)).catch(() => null);
  if (text === null) return next();
  res.type('text/markdown').send(text);
};

function serveFiles(): RequestHandler[] {
  const plain = { etag: false, lastModified: false, cacheControl: false, acceptRanges: false };
  return serveWithOptions({ ...plain, index: false, redirect: false });
}
