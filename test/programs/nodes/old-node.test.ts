import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { installNode } from '../../support/agents/install-once.js';
import { root } from '../../support/documents/sources.js';

const mains = ['primary', 'command', 'worker'].map((folder) => join(root, 'dist', 'src', folder, 'main.js'));

describe('A Node.js version that is too old', () => {
  it.each(['12.22.12', '18.20.8'])(
    'is reported with the required version before any other code is loaded: %s',
    async (version) => {
      const node = join(await installNode(version), 'node');
      for (const main of mains) {
        const { status, stdout, stderr } = spawnSync(node, [main], { encoding: 'utf8', env: {} });
        expect(stderr).toBe(`prompt-relay needs Node.js 20.19.2 or newer; this is ${version}\n`);
        expect([status, stdout]).toEqual([78, '']);
      }
    },
  );
});
