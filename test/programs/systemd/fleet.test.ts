import { existsSync } from 'node:fs';
import { until } from '../../support/basics/until.js';
import { snippetsFor } from '../../support/documents/snippets.js';
import { haproxy } from '../../support/service/haproxy.js';
import { describeInLab, SystemdLab } from '../../support/service/systemd-lab.js';
import { redisServer } from '../../support/stores/redis-server.js';

const describeFleet = existsSync(haproxy) && existsSync(redisServer) ? describeInLab() : describe.skip;
const json = 'Content-Type: application/json';
const front = 'https://relay.example.org';

/** Returns the commands of docs/fleet.md that create several instances, and the commands that start them. */
function commands(): readonly [string, string] {
  const [making = '', starting = ''] = snippetsFor('programs/systemd/fleet').map(({ code }) => code);
  return [making, starting];
}

describeFleet('deploy/fleet under a real systemd', () => {
  let lab: SystemdLab;
  const shell = (script: string) =>
    lab.shell(`sudo() { "$@"; }; cd /usr/local/lib/node_modules/prompt-relay/deploy/fleet\n${script}`);

  beforeAll(async () => {
    lab = await SystemdLab.boot();
    await lab.copyBuilt();
    await lab.shell('chmod -R go=rX /usr/local/lib/node_modules/prompt-relay');
    await shell(
      'systemd-sysusers "$PWD/../systemd/sysusers.conf"; systemd-tmpfiles --create "$PWD/../systemd/tmpfiles.conf"',
    );
    await shell(`echo fleet 0123456789abcdefghijklmnop >/etc/prompt-relay/api_key`);
    // Starts Redis and HAProxy as on Debian, with these files; only the addresses differ.
    await shell('systemd-tmpfiles --create haproxy.conf');
    await shell('sed "s/192.0.2.20/127.0.0.1/" redis.conf >/etc/redis/redis.conf');
    await shell(
      `mkdir -p /etc/haproxy/certs; cd /etc/haproxy/certs
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=relay.example.org -addext subjectAltName=DNS:relay.example.org -keyout key.pem -out certificate.pem
      cat certificate.pem key.pem >relay.example.org.pem`,
    );
    const places = [1, 2, 3].map((n) => `s/192.0.2.1${n}:5051/127.0.0.1:506${n} agent-port 507${n}/`).join(';');
    await shell(`sed "${places}" haproxy.cfg >/etc/haproxy/haproxy.cfg`);
  }, 120_000);
  afterAll(() => lab[Symbol.asyncDispose]());

  const ask = (path: string, body: object) => {
    const key = 'X-API-Key: 0123456789abcdefghijklmnop';
    const place = '--resolve relay.example.org:443:127.0.0.1 --cacert /etc/haproxy/certs/certificate.pem';
    return lab.run(
      'sh',
      '-c',
      `curl -sS ${place} -H "$1" -H "$2" -d "$3" ${front}${path}`,
      'sh',
      key,
      json,
      JSON.stringify(body),
    );
  };

  it('serves with three instances of the unit, and goes on with two', async () => {
    await lab.systemctl('unmask', 'redis-server', 'haproxy'); // the host of this lab may have masked them
    for (const other of ['nginx', 'caddy']) await lab.attempt('systemctl', 'stop', other); // these use its port
    await lab.systemctl('restart', 'redis-server', 'haproxy');
    const [making, starting] = commands();
    await shell(making);
    await shell('sed -i "/KEYS_FILE/d; \\$ a MODEL_API_CLI=demo" /etc/prompt-relay/environment');
    await shell(starting);
    const isServing = async () => (await ask('/chat', { message: 'I am Ada' })).includes('"success":true');
    await until(isServing, 'the fleet to serve');
    for (const n of [1, 2, 3]) {
      const isActive = () => lab.attempt('systemctl', 'is-active', `prompt-relay@${n}`);
      await until(async () => (await isActive()) === 'active', `instance ${n}`);
      expect(await lab.run('curl', '-s', `http://127.0.0.1:507${n}`, '--http0.9')).toMatch(/^up ready \d+%$/);
    }
    const { conversation_id: id } = JSON.parse(await ask('/chat', { message: 'I am Grace' }));
    for (const n of [1, 2]) await lab.systemctl('stop', `prompt-relay@${n}`);
    const said = JSON.parse(await ask('/chat', { message: 'What is my name?', conversation_id: id }));
    expect(said).toMatchObject({ response: expect.stringContaining('Grace'), message_count: 4 });
    expect(await lab.run('journalctl', '-u', 'prompt-relay@*', '-o', 'cat', '--no-pager')).not.toMatch(
      /"level":"warn"/,
    );
    await lab.systemctl('stop', 'prompt-relay@3', 'haproxy', 'redis-server');
  }, 120_000);
});
