import { readFileSync } from 'node:fs';
import { cp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { request } from '../../support/clients/raw-http.js';
import { root } from '../../support/documents/sources.js';
import { answerTo, failure } from '../../support/doors/door.js';
import { type Service, startService } from '../../support/service/service.js';

const files: readonly (readonly [path: string, type: string])[] = [
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['swagger-ui-standalone-preset.js', 'text/javascript; charset=utf-8'],
  ['swagger-ui-init.js', 'application/javascript; charset=utf-8'],
  ['favicon-32x32.png', 'image/png'],
  ['favicon-16x16.png', 'image/png'],
];

/** Copy of the program that the service runs. */
let home: string;
let folder: TemporaryFolder;
let service: Service;

beforeAll(async () => {
  folder = await temporaryFolder();
  home = join(folder.path, 'relay');
  for (const part of ['dist/src', 'docs', 'package.json']) {
    await cp(join(root, part), join(home, part), { recursive: true });
  }
  await symlink(join(root, 'node_modules'), join(home, 'node_modules'));
  service = await startService({ program: join(home, 'dist', 'src', 'primary', 'main.js') });
});
afterAll(async () => {
  await service.stop();
  await folder[Symbol.asyncDispose]();
});

describe('The documentation page', () => {
  it('has every file that it links to', async () => {
    const { text } = await service.get('/docs');
    const asked = [...text.matchAll(/(?:href|src)="\.\/([^"]+)"/g)].map(([, path]) => path);
    expect(asked.sort()).toEqual(files.map(([path]) => path).sort());
    for (const [path, type] of files) {
      const { status, headers } = await service.get(`/docs/${path}`);
      expect([path, status, headers.get('content-type')]).toEqual([path, 200, type]);
    }
  });

  it('serves the pages of the documentation as Markdown', async () => {
    const { status, headers, text } = await service.get('/docs/pages/stores.md');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8']);
    expect(text).toBe(readFileSync(join(root, 'docs', 'stores.md'), 'utf8'));
  });

  it.each(['/openapi.yaml', '/docs', '/docs/', ...files.map(([path]) => `/docs/${path}`)])(
    'is sent in full even if the client claims to have a copy: %s',
    async (path) => {
      const plain = await answerTo(service, request(`GET ${path}`));
      for (const header of [
        'Range: bytes=99999999-',
        'Range: bytes=0-9',
        'If-Match: "x"',
        'If-None-Match: *',
        'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT',
        'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT',
      ]) {
        const { status, text } = await answerTo(service, request(`GET ${path}`, [header]));
        expect([header, status, text === plain.text]).toEqual([header, 200, true]);
      }
    },
  );

  it.each([
    'pages/nothing.md',
    'pages/openapi.yaml',
    'pages/..%2FREADME.md',
    'pages/decisions.md',
    'pages/decisions%2F0043-features-in-folders.md',
    'package.json',
    'x/package.json',
    'x/swagger-ui-init.js',
    'index.html',
    'swagger-ui-bundle.js.map',
    '.',
    '..',
    '%2e%2e%2fpackage.json',
    'swagger-ui.css/',
    'SWAGGER-UI.CSS',
    '%zz',
    '%00',
  ])('excludes /docs/%s, which is a 404 in JSON', async (path) => {
    const { status, headers, body } = await answerTo(service, request(`GET /docs/${path}`));
    expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(body).toEqual(failure('not_found', 'no such path'));
  });
});

describe('GET /openapi.yaml', () => {
  it('still answers after the folder of the service was removed', async () => {
    const before = await service.get('/openapi.yaml');
    await rm(home, { recursive: true });
    for (let count = 0; count < 4; count++) {
      const { status, headers, text } = await service.get('/openapi.yaml');
      expect([status, headers.get('content-type')]).toEqual([200, before.headers.get('content-type')]);
      expect(text).toBe(before.text);
    }
  });
});
