import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { root } from '../../support/documents/sources.js';

const program = join(root, 'deploy', 'container', 'healthcheck.js');

/** Returns the Host header that the health check of the image sends, and its result for an answer with this status. */
async function checked(allowedHosts: string | undefined, status = 200): Promise<readonly [string, boolean]> {
  let host = '';
  const server = createServer((req, res) => {
    host = req.headers.host ?? '';
    res.writeHead(status).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const named = allowedHosts === undefined ? {} : { MODEL_API_ALLOWED_HOSTS: allowedHosts };
    const env = { MODEL_API_HOST: '0.0.0.0', MODEL_API_PORT: String(port), ...named };
    const [code] = await once(spawn(process.execPath, [program], { env, stdio: 'ignore' }), 'exit');
    return [host.replace(`:${port}`, ''), code === 0];
  } finally {
    server.close();
  }
}

describe('The health check of the image', () => {
  it.each([
    [undefined, '127.0.0.1'],
    ['relay.example.org, other', 'relay.example.org'],
    [' , relay', 'relay'],
    ['::1,relay', '[::1]'],
    ['[::1]', '[::1]'],
  ])('requests, with the allowed hosts %j, %s', async (allowedHosts, host) => {
    expect(await checked(allowedHosts)).toEqual([host, true]);
  });

  it('fails if the service reports that it is unhealthy', async () => {
    expect(await checked(undefined, 503)).toEqual(['127.0.0.1', false]);
  });
});
