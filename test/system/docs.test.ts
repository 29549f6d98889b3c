import { cp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folder.js';
import { startService } from '../support/service.js';
import { root } from '../support/sources.js';

describe('GET /openapi.yaml', () => {
  it('is answered also when the folder of the service has been removed', async () => {
    await using folder = await temporaryFolder();
    const home = join(folder.path, 'relay');
    for (const part of ['dist/src', 'docs', 'package.json']) {
      await cp(join(root, part), join(home, part), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(home, 'node_modules'));
    await using service = await startService({ program: join(home, 'dist', 'src', 'primary', 'main.js') });
    const before = await service.get('/openapi.yaml');
    await rm(home, { recursive: true });
    for (let count = 0; count < 4; count++) {
      const { status, headers, text } = await service.get('/openapi.yaml');
      expect([status, headers.get('content-type')]).toEqual([200, before.headers.get('content-type')]);
      expect(text).toBe(before.text);
    }
  });
});
