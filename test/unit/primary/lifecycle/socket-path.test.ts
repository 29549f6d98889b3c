import { once } from 'node:events';
import { access, mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { checkSocketPath, clearStaleSocket } from '../../../../src/primary/lifecycle/runtime-files.js';
import { ConfigFault } from '../../../../src/shared/config/config.js';
import { bindUnix } from '../../../../src/shared/node-internals/connections.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

async function withPath(act: (path: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  await act(join(folder.path, 'socket'));
}

describe('The path of the Unix socket', () => {
  it('may be free', () => withPath(clearStaleSocket));

  it('is cleared of a socket without a listener', () =>
    withPath(async (path) => {
      bindUnix(path); // a killed process leaves such a socket
      await checkSocketPath(path);
      await clearStaleSocket(path);
      await expect(access(path)).rejects.toMatchObject({ code: 'ENOENT' });
    }));

  it('is left alone if a listener answers', () =>
    withPath(async (path) => {
      const server = createServer().listen(path);
      await once(server, 'listening');
      await clearStaleSocket(path);
      await access(path);
      server.close();
    }));

  it.each<[string, (path: string) => Promise<void>]>([
    ['a file', (path) => writeFile(path, 'precious')],
    ['a folder', (path) => mkdir(path).then(() => {})],
    ['a link', (path) => symlink('/dev/null', path)],
  ])('is a configuration fault if it is %s, which is not removed', (_, make) =>
    withPath(async (path) => {
      await make(path);
      const faults = [`MODEL_API_SOCKET: ${path} exists and is not a socket: choose another path`];
      for (const look of [checkSocketPath, clearStaleSocket]) {
        const failure = await look(path).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(ConfigFault);
        expect(failure).toMatchObject({ faults });
      }
      await access(path);
    }),
  );
});
