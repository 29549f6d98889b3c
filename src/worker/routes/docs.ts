import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Router } from 'express';
import { generateHTML, serveWithOptions } from 'swagger-ui-express';
import type { AsyncHandler, Handler } from '../http/exchange.js';

/** Committed, and held equal to what the schemas give. */
const documentPath = join(__dirname, '..', '..', '..', '..', 'docs', 'openapi.yaml');

export function getOpenApi(): AsyncHandler {
  return async (_req, res) => {
    res.type('application/yaml').send(await readFile(documentPath));
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

/** Swagger UI with all its files from here; nothing is loaded from anywhere else. */
export function docsPages(): Router {
  const page = generateHTML(undefined, {
    customSiteTitle: 'prompt-relay',
    swaggerUrl: '/openapi.yaml',
    customCss: '.swagger-ui .topbar { display: none }', // another house's sign
    swaggerOptions: { tryItOutEnabled: true, validatorUrl: null, defaultModelsExpandDepth: 0 },
  }).replace('<head>', '<head>\n  <base href="/docs/">');
  const secure: Handler = (_req, res, next) => {
    res.set('Content-Security-Policy', contentSecurityPolicy);
    next();
  };
  const router = Router();
  router.use(secure);
  router.get('/', (_req, res) => void res.type('html').send(page));
  router.use(
    serveWithOptions({ etag: false, lastModified: false, cacheControl: false, index: false, redirect: false }),
  );
  return router;
}
