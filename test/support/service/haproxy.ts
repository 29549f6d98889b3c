import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';
import { freePort } from '../basics/free-port.js';
import { until } from '../basics/until.js';
import { snippetsFor } from '../documents/snippets.js';
import { root } from '../documents/sources.js';

export const haproxy = '/usr/sbin/haproxy';
const name = 'relay.example.org';
const run = promisify(execFile);

export interface FrontedHost {
  readonly port: number;
  readonly agentPort: number;
}

/** Server of the backend, as HAProxy reports it. */
export interface SeenHost {
  /** `UP`, `DOWN`, `DRAIN`, or a transition such as `UP 1/2`. */
  readonly status: string;
  readonly weight: number;
  /** Number of open requests on the server. */
  readonly open: number;
  /** Whether the agent port answered. */
  readonly isHeard: boolean;
}

export interface FrontOptions {
  /** Whether TLS and the redirect are active, as delivered; false for plain HTTP only. */
  readonly hasTls?: boolean;
  /** Changes the configuration further. */
  readonly change?: (text: string) => string;
}

const addresses = ['192.0.2.11', '192.0.2.12', '192.0.2.13'];

/** HAProxy in front of up to three hosts, with the delivered configuration. */
export class HaProxy implements AsyncDisposable {
  readonly port: number;
  readonly tlsPort: number;
  readonly statusPort: number;
  readonly folder: string;
  readonly #folder: TemporaryFolder;
  readonly #process: ChildProcess;

  private constructor(ports: FrontPorts, folder: TemporaryFolder, child: ChildProcess) {
    this.port = ports.plain;
    this.tlsPort = ports.tls;
    this.statusPort = ports.status;
    this.#folder = folder;
    this.folder = folder.path;
    this.#process = child;
  }

  static async start(hosts: readonly FrontedHost[], options: FrontOptions = {}): Promise<HaProxy> {
    const folder = await temporaryFolder();
    const ports = { plain: await freePort(), tls: await freePort(), status: await freePort() };
    if (options.hasTls) await makeCertificate(folder.path);
    const config = join(folder.path, 'haproxy.cfg');
    await writeFile(config, await adapted(hosts, ports, folder.path, options));
    const child = spawn(haproxy, ['-db', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] });
    const output: string[] = [];
    child.stderr?.setEncoding('utf8').on('data', (piece: string) => output.push(piece));
    const front = new HaProxy(ports, folder, child);
    const isUp = () => front.seen().then(({ size }) => size === hosts.length || child.exitCode !== null);
    await until(() => isUp().catch(() => child.exitCode !== null), 'HAProxy to be up');
    if (child.exitCode === null) return front;
    await front[Symbol.asyncDispose]();
    throw new Error(output.join(''));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Returns the servers by their names in the configuration: a, b, c. */
  async seen(): Promise<ReadonlyMap<string, SeenHost>> {
    const [head = '', ...lines] = (await this.#command('show stat')).trim().split('\n');
    const columns = head.replace('# ', '').split(',');
    const rows = lines
      .map((line) => line.split(','))
      .map((cells) => (column: string) => cells[columns.indexOf(column)]);
    const hosts = rows.filter((row) => row('pxname') === 'relays' && row('svname') !== 'BACKEND');
    return new Map(
      hosts.map((row) => [
        String(row('svname')),
        {
          status: String(row('status')),
          weight: Number(row('weight')),
          open: Number(row('scur')),
          isHeard: /^L7/.test(String(row('agent_status'))),
        },
      ]),
    );
  }

  /** Resolves when HAProxy reports a matching state of this host. */
  async untilSeen(host: string, fits: (seen: SeenHost) => boolean, what: string): Promise<SeenHost> {
    return until(async () => {
      const seen = (await this.seen()).get(host);
      return seen !== undefined && fits(seen) ? seen : null;
    }, `host ${host} to be seen ${what}`);
  }

  #command(order: string): Promise<string> {
    const socket = connect(join(this.folder, 'admin.sock'));
    socket.write(`${order}\n`);
    return text(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.kill('SIGKILL');
      await once(this.#process, 'exit');
    }
    await this.#folder[Symbol.asyncDispose]();
  }
}

interface FrontPorts {
  readonly plain: number;
  readonly tls: number;
  readonly status: number;
}

/**
 * Returns HAProxy's messages about the delivered configuration, with a trial certificate. Rejects if HAProxy finds an
 * error.
 */
export async function checkDelivered(): Promise<string> {
  await using folder = await temporaryFolder();
  await makeCertificate(folder.path);
  const config = join(folder.path, 'haproxy.cfg');
  await writeFile(config, withCertificate(await delivered(), folder.path));
  const { stdout, stderr } = await run(haproxy, ['-c', '-f', config]);
  return stdout + stderr;
}

/** Checks the configuration for one machine, made with a trial certificate by the commands of docs/fleet.md. */
export async function checkOfPage(): Promise<{ readonly config: string; readonly output: string }> {
  await using folder = await temporaryFolder();
  const page = snippetsFor('programs/fleet/front').map(({ code }) => code);
  const commandOf = (start: RegExp) =>
    start.exec(page.join(''))?.[0].replaceAll('/usr/local/lib/node_modules/prompt-relay', root) ?? '';
  const shell = (command: string) => run('sh', ['-c', command], { cwd: folder.path });
  await shell(commandOf(/^ *openssl req .*$/m));
  await shell('cat cert.pem key.pem > both.pem');
  const { stdout: config } = await shell(commandOf(/^sed -e [^|]*/m));
  const path = join(folder.path, 'haproxy.cfg');
  await writeFile(path, withCertificate(config, folder.path));
  const { stdout, stderr } = await run(haproxy, ['-c', '-f', path]);
  return { config, output: stdout + stderr };
}

function delivered(): Promise<string> {
  return readFile(join(root, 'deploy', 'fleet', 'haproxy.cfg'), 'utf8');
}

function withCertificate(config: string, folder: string): string {
  return config.replace(`/etc/haproxy/certs/${name}.pem`, join(folder, 'both.pem'));
}

async function adapted(
  hosts: readonly FrontedHost[],
  { plain, tls, status }: FrontPorts,
  folder: string,
  { hasTls = false, change = (config) => config }: FrontOptions,
): Promise<string> {
  const machineLines = /^ *(log \/dev\/log|log global|option httplog|user|group|chroot) ?.*\n/gm;
  const tlsLines = /^ *(bind :443|http-request redirect) .*\n/gm;
  const config = (await delivered()).replaceAll(machineLines, '').replaceAll(hasTls ? /(?!)/g : tlsLines, '');
  const atPorts = withCertificate(config, folder)
    .replace('/run/haproxy/admin.sock mode 660', `${join(folder, 'admin.sock')} mode 600`)
    .replace('bind :80', `bind 127.0.0.1:${plain}`)
    .replace('bind :443', `bind 127.0.0.1:${tls}`)
    .replace('bind 127.0.0.1:8404', `bind 127.0.0.1:${status}`);
  const placed = addresses.reduce((text, address, index) => {
    const host = hosts[index];
    if (host === undefined) return text.replaceAll(new RegExp(`^ *server \\w ${address}.*\\n`, 'gm'), '');
    return text.replaceAll(`${address}:5051`, `127.0.0.1:${host.port} agent-port ${host.agentPort}`);
  }, atPorts);
  return change(placed);
}

async function makeCertificate(folder: string): Promise<void> {
  const newKey = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  await run('openssl', [...newKey, ...names, '-keyout', key, '-out', certificate]);
  await writeFile(join(folder, 'both.pem'), (await readFile(certificate, 'utf8')) + (await readFile(key, 'utf8')));
}
