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
  it('have no command with the path of the program that the notes about another path leave out', () => {
    const unit = readFileSync(join(folder, 'prompt-relay.service'), 'utf8');
    const commands = [...unit.matchAll(/^(Exec\w+=)\S* \/usr\/local\/lib\/node_modules\//gm)].map(
      ([, name]) => name ?? '',
    );
    expect(commands).toEqual(['ExecStart=', 'ExecReload=']);
    const note = (path: string, pattern: RegExp) => pattern.exec(readFileSync(join(root, path), 'utf8'))?.[0] ?? '';
    const notes = [
      note('CHANGELOG.md', /^- The units start the program .*$/m),
      note('docs/systemd.md', /^For a program in another folder, .*$/m),
      note('deploy/systemd/prompt-relay.service', /^# If the program is elsewhere, .*$/m),
    ];
    for (const name of commands) for (const text of notes) expect(text).toContain(name);
  });

  it.each(units)('link to the documentation page at the default address of the service: %s', (name) => {
    const [, address] = /^Documentation=(.*)$/m.exec(readFileSync(join(folder, name), 'utf8')) ?? [];
    const [host, port] = [variables.MODEL_API_HOST[2], variables.MODEL_API_PORT[2]];
    expect(address).toBe(`http://${host}:${port}/docs`); // the service itself does not support TLS
  });
});
