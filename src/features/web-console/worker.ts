import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { Handler } from '../../worker/http/exchange.js';
import { consoleFiles } from './console-files.js';
import type { calls } from './shared.js';

export async function createPart({ primary }: Pick<WorkerCore<typeof calls>, 'primary'>): Promise<WorkerPart> {
  const { hasConsole } = await primary.call('hasConsole', {});
  if (!hasConsole) return { routes: [] };
  const route = '/console/'; // redirects are counted under it
  return {
    routes: [
      { route, paths: ['/', '/console'], get: [redirectToConsole] },
      { route, paths: [/^\/console\/[a-z-]{1,40}\/?$/], get: [redirectToPage] },
      { route, paths: [/^\/console\//], get: [consoleFiles()] },
    ],
  };
}

/** Redirects to a relative URL, which is also correct behind a proxy that adds a path prefix. */
const redirectToConsole: Handler = (_req, res) => {
  res.writeHead(302, { Location: 'console/', 'Content-Length': 0 }).end();
};

/**
 * Redirects a typed address such as `/console/now` to the page, by a relative URL as in `redirectToConsole`. The console
 * knows its pages, and says so if there is no such page.
 */
const redirectToPage: Handler = ({ path, url }, res) => {
  const query = url.includes('?') ? url.slice(url.indexOf('?')) : '';
  const page = path.slice('/console/'.length).replace('/', '');
  res.writeHead(302, { Location: `${path.endsWith('/') ? '../' : './'}#/${page}${query}`, 'Content-Length': 0 }).end();
};
