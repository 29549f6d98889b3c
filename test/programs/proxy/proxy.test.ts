import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startReportingModel } from '../../support/agents/reporting-model.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { caddy, FrontProxy, nginx } from '../../support/service/front-proxy.js';
import { type Service, startService } from '../../support/service/service.js';

const key = 'a-key-of-some-length-1234';
const env = {
  MODEL_API_ALLOWED_HOSTS: 'relay.example.org,127.0.0.1',
  MODEL_API_ALLOWED_ORIGINS: 'https://relay.example.org',
  MODEL_API_TRUST_PROXY: '127.0.0.1',
};
/** Maximum time from the disconnection of a client to the end of its job, on a busy machine. */
const goneMs = 15_000;
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
