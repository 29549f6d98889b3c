import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installNode } from '../../support/agents/install-once.js';
import { until } from '../../support/basics/until.js';
import { snippetsFor } from '../../support/documents/snippets.js';
import { root } from '../../support/documents/sources.js';
import { describeInLab, SystemdLab } from '../../support/service/systemd-lab.js';

const unit = 'prompt-relay.service';
const folder = '/var/lib/prompt-relay';
const key = '0123456789abcdefghijklmnop';
/** Node for the store in a file: the lab has the Node of this machine, which may be too old. */
const nodeVersion = '24.21.0';

/** Commands of an operator, such as `sudo` and programs without a path. */
const around = `
export MODEL_API_KEY=${key}
sudo() {
  if [ "$1" != -u ]; then "$@"; return; fi
  local user=$2; shift 2
  setpriv --reuid "$user" --regid "$user" --init-groups env --unset MODEL_API_KEY "$@"
}
cd ${folder}
`;

/** Returns the setting and the backup commands of docs/stores.md, in their order. */
async function told() {
  const page = await readFile(join(root, 'docs', 'stores.md'), 'utf8');
  const [setting = ''] = /^MODEL_API_STORE=sqlite:.*$/m.exec(page) ?? [];
  const [running = '', stopped = '', restore = ''] = snippetsFor('programs/systemd/store').map(({ code }) => code);
  return { setting, running, stopped, restore };
}

describeInLab()('A store in a file under a real systemd', () => {
  let lab: SystemdLab;
  const shell = (script: string) => lab.shell(around + script);

  beforeAll(async () => {
    const node = join(await installNode(nodeVersion), 'node');
    lab = await SystemdLab.boot();
    await lab.copyProgram(node, '/usr/bin/node');
    await lab.copyBuilt();
    const deployed = '/usr/local/lib/node_modules/prompt-relay/deploy/systemd';
    await lab.shell(`chmod -R go=rX /usr/local/lib/node_modules/prompt-relay
      systemd-sysusers ${deployed}/sysusers.conf
      systemd-tmpfiles --create ${deployed}/tmpfiles.conf
      echo ${key} >/etc/prompt-relay/api_key
      printf '#!/bin/sh\\nexec node /usr/local/lib/node_modules/prompt-relay/dist/src/command/main.js "$@"\\n' >/usr/local/bin/prompt-relay
      chmod +x /usr/local/bin/prompt-relay
      systemctl enable ${deployed}/prompt-relay.{socket,service}`);
  }, 240_000);

  afterAll(() => lab?.[Symbol.asyncDispose]());

  async function chat(message: string, id?: string) {
    const body = JSON.stringify({ message, conversation_id: id });
    const headers = ['--header', 'Content-Type: application/json', '--header', `X-API-Key: ${key}`];
    return JSON.parse(await lab.run('curl', '--silent', ...headers, '--data', body, 'http://127.0.0.1:5051/chat'));
  }

  it('survives a restart, and is restored from a backup with the documented commands', async () => {
    const { setting, running, stopped, restore } = await told();
    await lab.systemctl('stop', 'prompt-relay.socket', unit);
    await lab.shell(`rm -f ${folder}/store.db* ${folder}/backup-*`); // of a first try
    await lab.shell(`printf '%s\\n' MODEL_API_CLI=demo '${setting}' >/etc/prompt-relay/environment`);
    await lab.systemctl('start', 'prompt-relay.socket', unit);
    const { conversation_id: id } = await chat('I am Grace');
    await lab.systemctl('restart', unit);
    const heard = { response: expect.stringContaining('Grace'), message_count: 4 };
    expect(await chat('What is my name?', id)).toMatchObject(heard);
    expect(await shell(running)).toMatch(/^\/var\/lib\/prompt-relay\/backup-2026-01-31\.db: /);
    expect((await chat('After the backup', id)).message_count).toBe(6);
    await shell(restore);
    expect((await chat('What is my name?', id)).message_count).toBe(6);
    await lab.systemctl('stop', 'prompt-relay.socket', unit);
    await shell(`rm backup-2026-01-31.db; ${stopped}`);
    await shell(restore);
    expect((await chat('And now?', id)).message_count).toBe(8);
    expect(await shell('stat --format "%n %U %a" store.db*')).toMatch(/^store.db prompt-relay 600$/m);
    expect(await lab.show('NRestarts')).toBe('0');
  });

  it('may be locked at the start while a client polls: the service is degraded, and neither unit fails', async () => {
    await lab.attempt('systemctl', 'stop', 'holder', 'poller'); // of a first try
    await lab.shell(`printf '%s\\n' MODEL_API_CLI=demo '${(await told()).setting}' >/etc/prompt-relay/environment`);
    await lab.systemctl('restart', unit); // creates the file
    await lab.systemctl('stop', 'prompt-relay.socket', unit);
    // Without the global variable, the database would be garbage-collected and closed.
    const open = "globalThis.open = new (require('node:sqlite').DatabaseSync)('store.db')";
    const lock = "open.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')";
    const holder = ['--unit=holder', '--collect', '--uid=prompt-relay', `--working-directory=${folder}`];
    await lab.run(
      'systemd-run',
      ...holder,
      'node',
      '-e',
      `${open}; ${lock}; console.log(1 + 1, 'locks'); setInterval(() => {}, 1000)`,
    );
    await until(async () => (await lab.run('journalctl', '--unit', 'holder')).includes('2 locks'), 'the lock');
    const inUse = () => lab.journal('store.db is in use by another process');
    const { length: before } = await inUse();
    const poll = 'while sleep 0.1; do curl --silent --max-time 5 http://127.0.0.1:5051/health; done';
    await lab.systemctl('start', 'prompt-relay.socket');
    await lab.run('systemd-run', '--unit=poller', '--collect', 'sh', '-c', poll); // the socket starts the service
    await until(async () => (await inUse()).length > before, 'the record');
    expect((await chat('Too early')).error).toBe('store_unavailable');
    await until(async () => (await lab.health())?.status === 'degraded', 'the service to be degraded');
    await lab.systemctl('stop', 'holder');
    await until(async () => (await lab.health())?.status === 'ok', 'the service to be well');
    expect((await chat('Now')).message_count).toBe(2);
    await lab.systemctl('stop', 'poller');
    expect(await lab.systemctl('is-active', 'prompt-relay.socket', unit)).toBe('active\nactive');
    expect(await lab.show('NRestarts')).toBe('0');
  });
});
