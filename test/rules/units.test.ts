import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { variables } from '../../src/shared/config/variables.js';
import { root } from '../support/documents/sources.js';

const folder = join(root, 'deploy', 'systemd');
const units = readdirSync(folder).filter((name) => /\.(service|socket)$/.test(name));

describe('The files that the installation creates', () => {
  const lines = readFileSync(join(folder, 'tmpfiles.conf'), 'utf8').split('\n');

  it.each(['environment', 'api_key'])('are readable for root only if they may contain a secret: %s', (name) => {
    const modes = lines.map((line) => line.split(/\s+/)).filter(([, path]) => path === `/etc/prompt-relay/${name}`);
    expect(modes.length).toBeGreaterThan(0);
    for (const [, , mode, user] of modes) expect([mode, user]).toEqual(['0600', 'root']);
  });
});

describe('The systemd units', () => {
  it.each(units)('link to the documentation page at the default address of the service: %s', (name) => {
    const [, address] = /^Documentation=(.*)$/m.exec(readFileSync(join(folder, name), 'utf8')) ?? [];
    const [host, port] = [variables.MODEL_API_HOST[2], variables.MODEL_API_PORT[2]];
    expect(address).toBe(`http://${host}:${port}/docs`); // the service itself does not support TLS
  });
});
