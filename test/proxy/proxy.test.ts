import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startConverser } from '../support/converser.js';
import { temporaryFolder } from '../support/folder.js';
import { untilJobs } from '../support/jobs.js';
import { describeWith } from '../support/needs.js';
import { caddy, FrontProxy, nginx } from '../support/proxy.js';
import { type Service, startService } from '../support/service.js';
import { root } from '../support/sources.js';

const key = 'a-key-of-some-length-1234';
const env = {
  MODEL_API_ALLOWED_HOSTS: 'relay.example.org,127.0.0.1',
  MODEL_API_ALLOWED_ORIGINS: 'https://relay.example.org',
  MODEL_API_TRUST_PROXY: '127.0.0.1',
};
/** From the end of a client to the end of its job. */
const goneMs = 3000;
const json = ['-H', 'Content-Type: application/json'];
const withKey = ['-H', `X-API-Key: ${key}`];

for (const kind of [caddy, nginx]) {
  describeWith(kind.program)(`deploy/proxy/${kind.file}`, () => {
    let service: Service;
    let proxy: FrontProxy;

    beforeAll(async () => {
      service = await startService({ env }); // no key: so a local caller would be a user
      proxy = await FrontProxy.start(kind, service.port);
    });
    afterAll(async () => {
      await proxy?.[Symbol.asyncDispose]();
      await service.stop();
    });

    it('passes a question on, and its answer back', async () => {
      const { status, text } = await proxy.curl(['/ask', ...json, '-d', '{"prompt":"I am Ada"}']);
      expect([status, JSON.parse(text)]).toEqual([200, expect.objectContaining({ success: true })]);
    });

    it('says who the client is, whatever the client says', async () => {
      const forged = ['-H', 'X-Forwarded-For: 203.0.113.9', '-H', 'X-Request-Id: forged-address'];
      expect((await proxy.curl(['/ask', ...json, ...forged, '-d', '{"prompt":"Hello"}'])).status).toBe(200);
      const record = await service.log('http_request_completed', ({ request_id }) => request_id === 'forged-address');
      expect(record.client).toBe('address 127.0.0.1'); // neither the proxy's user nor what was forged
    });

    it('leads a browser to the console', async () => {
      const { status, text } = await proxy.curl(['/', '-L']);
      expect([status, text]).toEqual([200, expect.stringContaining('<title>')]);
    });

    it('takes a page of its own name for the service itself', async () => {
      expect((await proxy.curl(['/version', '-H', 'Origin: https://relay.example.org'])).status).toBe(200);
      expect((await proxy.curl(['/version', '-H', 'Origin: https://evil.example'])).status).toBe(403);
    });

    it('refuses a name that the service does not answer to', async () => {
      const { status, text } = await proxy.curl(['/version'], 'other.example.org');
      expect(status === 403 || !text.includes('version')).toBe(true);
    });

    it('passes the stream of the status on as it comes', async () => {
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

    it('passes large bodies on, and none that is too large', async () => {
      await using folder = await temporaryFolder();
      const post = async (bytes: number) => {
        const file = join(folder.path, 'body.json');
        await writeFile(file, JSON.stringify({ prompt: 'x'.repeat(bytes), model: 'unknown' }));
        return (await proxy.curl(['/ask', ...json, '-H', 'Expect:', '--data-binary', `@${file}`])).status;
      };
      expect(await post(12e6)).toBe(400); // read, and refused for its model
      expect([413, 0]).toContain(await post(20e6)); // or the connection is closed under the client that still sends
    });

    it('leads plain requests to TLS', async () => {
      const to = `http://relay.example.org:${proxy.ports.plain}/docs`;
      const resolve = ['--resolve', `relay.example.org:${proxy.ports.plain}:127.0.0.1`];
      const curl = spawn('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}', ...resolve, to]);
      const [said] = (await once(curl.stdout, 'data')) as [Buffer];
      expect(String(said)).toMatch(/^30[18] https:\/\/relay\.example\.org.*\/docs$/);
    });
  });

  describeWith(kind.program)(`a stream through deploy/proxy/${kind.file}`, () => {
    it('comes as it is written, and a client that leaves is noticed', async () => {
      await using service = await startConverser({ ...env, MODEL_API_KEY: key });
      await using proxy = await FrontProxy.start(kind, service.port);
      const ask = ['/ask', ...json, ...withKey, '-d', '{"prompt":"hang","stream":true}'];
      const client = spawn('curl', proxy.argsFor(ask), { stdio: ['ignore', 'pipe', 'inherit'] });
      let text = '';
      for await (const piece of client.stdout.setEncoding('utf8')) {
        text += piece;
        if (text.includes('event: delta')) break; // the job goes on for ever
      }
      expect(text).toContain('"Well"');
      client.kill('SIGKILL');
      await untilJobs(service, 0, 0, goneMs);
    });
  });
}

describe('docs/remote-access.md', () => {
  const page = readFileSync(join(root, 'docs', 'remote-access.md'), 'utf8');
  const fileOf = (name: string) => readFileSync(join(root, 'deploy', 'proxy', name), 'utf8');

  it('shows the files as they are', () => {
    const [, site = ''] = /```\n(relay\.example\.org .*?)```/s.exec(page) ?? [];
    expect(fileOf('Caddyfile')).toContain(site);
    const [, location = ''] = /```nginx\n(.*?)```/s.exec(page) ?? [];
    expect(fileOf('nginx.conf').replaceAll(/^ {4}/gm, '')).toContain(location);
  });
});
