import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';
import { generateHTML, serveWithOptions } from 'swagger-ui-express';
import type { AsyncHandler, Handler } from '../http/exchange.js';

/** Committed, and held equal to what the schemas give. */
const documentPath = join(__dirname, '..', '..', '..', '..', 'docs', 'openapi.yaml');

/** Reads it at once, and never again: the folder of a running service may be replaced. */
export function getOpenApi(): AsyncHandler {
  const document = readFile(documentPath);
  document.catch(() => {}); // told to whoever asks for it: the service needs it for nothing else
  return async (_req, res) => {
    const bytes = await document;
    res.type('application/yaml').send(bytes);
  };
}

/** Only what comes from this service, and no script that stands in the page: Swagger UI styles itself inline. */
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

/** The files of Swagger UI that its page asks for. The package holds more, some as large as all of these. */
const files = [
  '/swagger-ui.css',
  '/swagger-ui-bundle.js',
  '/swagger-ui-standalone-preset.js',
  '/swagger-ui-init.js',
  '/favicon-32x32.png',
  '/favicon-16x16.png',
];

/** What a client says of a copy that it holds: none may be stored, so there is nothing to compare. */
const ofCopies = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];

/** Swagger UI with all its files from here; nothing is loaded from anywhere else. */
export function docsPages(): Router {
  const page = generateHTML(undefined, {
    customSiteTitle: 'prompt-relay',
    swaggerUrl: '/openapi.yaml',
    customCss: '.swagger-ui .topbar { display: none }', // another house's sign
    swaggerOptions: { tryItOutEnabled: true, validatorUrl: null, defaultModelsExpandDepth: 0 },
  }).replace('<head>', '<head>\n  <base href="/docs/">');
  const secure: Handler = (req, res, next) => {
    for (const name of ofCopies) delete req.headers[name];
    res.set('Content-Security-Policy', contentSecurityPolicy);
    next();
  };
  const router = Router({ strict: true, caseSensitive: true });
  router.use(secure);
  router.get('/', (_req, res) => void res.type('html').send(page));
  router.get(files, serveFiles());
  return router;
}

function serveFiles(): RequestHandler[] {
  const plain = { etag: false, lastModified: false, cacheControl: false, acceptRanges: false };
  return serveWithOptions({ ...plain, index: false, redirect: false });
}
