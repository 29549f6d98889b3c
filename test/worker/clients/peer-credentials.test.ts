import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../../src/shared/clock.js';
import { PeerCredentials } from '../../../src/worker/clients/peer-credentials.js';
import { temporaryFolder } from '../../support/folder.js';

describe('The credentials of the peer of a Unix socket', () => {
  it('are asked of the kernel, and the connection goes on as before', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'socket');
    const server = createServer().listen(path);
    await once(server, 'listening');
    const client = connect(path);
    const [accepted] = (await once(server, 'connection')) as [Socket];
    const credentials = new PeerCredentials(systemClock);
    const uids = await Promise.all([credentials.uidOf(accepted), credentials.uidOf(accepted)]);
    expect(uids).toEqual([process.getuid?.(), process.getuid?.()]);
    accepted.end('still here');
    expect(String((await once(client, 'data'))[0])).toBe('still here');
    const closed = once(accepted, 'close');
    client.destroy();
    await closed;
    server.close();
    expect(await credentials.uidOf(accepted)).toBeNull();
  });
});
