import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';
import { freePort } from '../basics/free-port.js';
import { until } from '../basics/until.js';
import { root } from '../documents/sources.js';

const name = 'relay.example.org';
const run = promisify(execFile);

/** Describes how to run a file of deploy/proxy beside other proxies: on free ports, with a test certificate. */
export interface ProxyKind {
  readonly program: string;
  readonly file: string;
  /** Returns the text of the file with the ports, the paths and the additions for a test. */
  readonly adapt: (text: string, at: ProxyPorts, folder: string) => string;
  readonly args: (config: string, folder: string) => readonly string[];
}

interface ProxyPorts {
  readonly service: number;
  readonly tls: number;
  readonly plain: number;
}

export const caddy: ProxyKind = {
  program: '/usr/bin/caddy',
  file: 'Caddyfile',
  adapt: (text, { service, tls, plain }, folder) =>
    `{\n\tadmin off\n\thttp_port ${plain}\n\thttps_port ${tls}\n}\n${text
      .replace('127.0.0.1:5051', `127.0.0.1:${service}`)
      .replace(`${name} {`, `${name} {\n\ttls ${folder}/certificate.pem ${folder}/key.pem`)}`,
  args: (config) => ['run', '--adapter', 'caddyfile', '--config', config],
};

export const nginx: ProxyKind = {
  program: '/usr/sbin/nginx',
  file: 'nginx.conf',
  adapt: (text, { service, tls, plain }, folder) => {
    const site = text
      .replace('127.0.0.1:5051', `127.0.0.1:${service}`)
      .replace('listen 443', `listen 127.0.0.1:${tls}`)
      .replace('listen 80', `listen 127.0.0.1:${plain}`)
      .replace(/\/etc\/letsencrypt.*fullchain\.pem/, `${folder}/certificate.pem`)
      .replace(/\/etc\/letsencrypt.*privkey\.pem/, `${folder}/key.pem`);
    // The workers of nginx must be able to read a folder of this user.
    const own = `${process.getuid?.() === 0 ? 'user root;\n' : ''}daemon off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\n`;
    return `${own}http {\naccess_log off;\nclient_body_temp_path ${folder}/bodies;\n${site}}\n`;
  },
  args: (config, folder) => ['-p', folder, '-c', config],
};

interface Curled {
  readonly status: number;
  readonly text: string;
}

/** A proxy in front of a service, run from the file for users. */
export class FrontProxy implements AsyncDisposable {
  readonly ports: ProxyPorts;
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #folder: TemporaryFolder;

  private constructor(ports: ProxyPorts, process: ChildProcess, folder: TemporaryFolder) {
    this.ports = ports;
    this.url = `https://${name}:${ports.tls}`;
    this.#process = process;
    this.#folder = folder;
  }

  static async start(kind: ProxyKind, service: number): Promise<FrontProxy> {
    const folder = await temporaryFolder();
    const { path } = folder;
    const newKey = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},DNS:other.example.org`];
    await run('openssl', [
      ...newKey,
      ...names,
      '-keyout',
      join(path, 'key.pem'),
      '-out',
      join(path, 'certificate.pem'),
    ]);
    const ports = { service, tls: await freePort(), plain: await freePort() };
    const text = await readFile(join(root, 'deploy', 'proxy', kind.file), 'utf8');
    const config = join(path, 'config');
    await writeFile(config, kind.adapt(text, ports, path));
    const env = { PATH: process.env.PATH ?? '', HOME: path };
    const child = spawn(kind.program, kind.args(config, path), { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const said: string[] = [];
    child.stderr?.setEncoding('utf8').on('data', (text: string) => said.push(text));
    const proxy = new FrontProxy(ports, child, folder);
    const answers = () => proxy.curl(['/health']).then(({ status }) => status > 0);
    await until(answers, 'the proxy to answer').catch(async (error: unknown) => {
      await proxy[Symbol.asyncDispose]();
      throw new Error(`${String(error)}: ${said.join('')}`);
    });
    return proxy;
  }

  /** Returns the arguments of curl for a path on this host, or on another name of the certificate. */
  argsFor([path = '/', ...more]: readonly string[], host = name): string[] {
    const { tls } = this.ports;
    const trust = ['--cacert', join(this.#folder.path, 'certificate.pem'), '--resolve', `${host}:${tls}:127.0.0.1`];
    return ['-sSN', '--max-time', '30', ...trust, ...more, `https://${host}:${tls}${path}`];
  }

  /** Resolves with status 0 if no response arrived. */
  async curl(args: readonly string[], host = name): Promise<Curled> {
    const asked = run('curl', ['-w', '\n%{http_code}', ...this.argsFor(args, host)], { maxBuffer: 64 * 1024 ** 2 });
    const { stdout } = await asked.catch(({ stdout = '' }: { stdout?: string }) => ({ stdout }));
    const end = stdout.lastIndexOf('\n');
    return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, Math.max(0, end)) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null) {
      this.#process.kill('SIGTERM');
      await once(this.#process, 'exit');
    }
    await this.#folder[Symbol.asyncDispose]();
  }
}
