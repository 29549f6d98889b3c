import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startReportingModel } from '../../support/agents/reporting-model.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { freePort } from '../../support/basics/free-port.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { root } from '../../support/documents/sources.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

const name = 'relay.example.org';
const run = promisify(execFile);

/** Describes how to run a file of deploy/proxy beside other proxies: on free ports, with a test certificate. */
interface ProxyKind {
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

const caddy: ProxyKind = {
  program: '/usr/bin/caddy',
  file: 'Caddyfile',
  adapt: (text, { service, tls, plain }, folder) =>
    `{\n\tadmin off\n\thttp_port ${plain}\n\thttps_port ${tls}\n}\n${text
      .replace('127.0.0.1:5051', `127.0.0.1:${service}`)
      .replace(`${name} {`, `${name} {\n\ttls ${folder}/certificate.pem ${folder}/key.pem`)}`,
  args: (config) => ['run', '--adapter', 'caddyfile', '--config', config],
};

const nginx: ProxyKind = {
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
class FrontProxy implements AsyncDisposable {
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

const key = 'a-key-of-some-length-1234';
const env = {
  MODEL_API_ALLOWED_HOSTS: 'relay.example.org,127.0.0.1',
  MODEL_API_ALLOWED_ORIGINS: 'https://relay.example.org',
  MODEL_API_TRUST_PROXY: '127.0.0.1',
};
/** Maximum time from the disconnection of a client to the end of its job. */
const goneMs = 3000;
const json = ['-H', 'Content-Type: application/json'];
const withKey = ['-H', `X-API-Key: ${key}`];

for (const kind of [caddy, nginx]) {
  describeWith(kind.program)(`deploy/proxy/${kind.file}`, () => {
    let service: Service;
    let proxy: FrontProxy;

    beforeAll(async () => {
      service = await startService({ env }); // without a key, a local caller would be identified as a user
      proxy = await FrontProxy.start(kind, service.port);
    });
    afterAll(async () => {
      await proxy?.[Symbol.asyncDispose]();
      await service.stop();
    });

    it('forwards a question and its answer', async () => {
      const { status, text } = await proxy.curl(['/ask', ...json, '-d', '{"prompt":"I am Ada"}']);
      expect([status, JSON.parse(text)]).toEqual([200, expect.objectContaining({ success: true })]);
    });

    it('sends the client address to the service, even if the client sends a false one', async () => {
      const forged = ['-H', 'X-Forwarded-For: 203.0.113.9', '-H', 'X-Request-Id: forged-address'];
      expect((await proxy.curl(['/ask', ...json, ...forged, '-d', '{"prompt":"Hello"}'])).status).toBe(200);
      const record = await service.log('http_request_completed', ({ request_id }) => request_id === 'forged-address');
      expect(record.client).toBe('address 127.0.0.1'); // neither the proxy's user nor the forged address
    });

    it('leads a browser to the console', async () => {
      const { status, text } = await proxy.curl(['/', '-L']);
      expect([status, text]).toEqual([200, expect.stringContaining('<title>')]);
    });

    it('accepts a page of its host name as same-origin, and rejects a foreign one', async () => {
      expect((await proxy.curl(['/version', '-H', 'Origin: https://relay.example.org'])).status).toBe(200);
      expect((await proxy.curl(['/version', '-H', 'Origin: https://evil.example'])).status).toBe(403);
    });

    it('rejects a host name that the service does not accept', async () => {
      const { status, text } = await proxy.curl(['/version'], 'other.example.org');
      expect(status === 403 || !text.includes('version')).toBe(true);
    });

    it('forwards the status stream as it arrives', async () => {
      const viewer = spawn('curl', proxy.argsFor(['/status/stream']), { stdio: ['ignore', 'pipe', 'inherit'] });
      let text = '';
      for await (const piece of viewer.stdout.setEncoding('utf8')) {
        text += piece;
        if (text.includes('event: change')) break;
        if (text.includes('event: snapshot')) void proxy.curl(['/ask', ...json, '-d', '{"prompt":"Hello"}']);
      }
      viewer.kill('SIGKILL');
      expect(text).toMatch(/^event: snapshot\n[\s\S]*\nevent: change\n/);
    });

    it('forwards large bodies, and rejects a body that is too large', async () => {
      await using folder = await temporaryFolder();
      const post = async (bytes: number) => {
        const file = join(folder.path, 'body.json');
        await writeFile(file, JSON.stringify({ prompt: 'x'.repeat(bytes), model: 'unknown' }));
        return (await proxy.curl(['/ask', ...json, '-H', 'Expect:', '--data-binary', `@${file}`])).status;
      };
      expect(await post(12e6)).toBe(400); // the body is read, then its model is rejected
      expect([413, 0]).toContain(await post(20e6)); // 0: the connection was closed while the client still sent
    });

    it('redirects plain requests to TLS', async () => {
      const to = `http://relay.example.org:${proxy.ports.plain}/docs`;
      const resolve = ['--resolve', `relay.example.org:${proxy.ports.plain}:127.0.0.1`];
      const curl = spawn('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}', ...resolve, to]);
      const [said] = (await once(curl.stdout, 'data')) as [Buffer];
      expect(String(said)).toMatch(/^30[18] https:\/\/relay\.example\.org.*\/docs$/);
    });
  });

  describeWith(kind.program)(`A stream through deploy/proxy/${kind.file}`, () => {
    it('arrives as it is written, and the service notices when the client disconnects', async () => {
      await using service = await startReportingModel({ ...env, MODEL_API_KEY: key });
      await using proxy = await FrontProxy.start(kind, service.port);
      const ask = ['/ask', ...json, ...withKey, '-d', '{"prompt":"hang","stream":true}'];
      const client = spawn('curl', proxy.argsFor(ask), { stdio: ['ignore', 'pipe', 'inherit'] });
      let text = '';
      for await (const piece of client.stdout.setEncoding('utf8')) {
        text += piece;
        if (text.includes('event: delta')) break; // the job never ends
      }
      expect(text).toContain('"Well"');
      client.kill('SIGKILL');
      await untilJobs(service, 0, 0, goneMs);
    });
  });
}
