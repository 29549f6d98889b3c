import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { caddy, FrontProxy, nginx, type ProxyKind } from '../../support/service/front-proxy.js';
import { type Service, startService } from '../../support/service/service.js';

const groups = { ada: 'staff,operators', bob: 'students', zoe: null } as const;
type Name = keyof typeof groups;

/** Returns who has signed on; null for nobody. */
function personOf({ headers }: IncomingMessage): Name | null {
  return (/\bsession=(ada|bob|zoe)\b/.exec(headers.cookie ?? '')?.[1] as Name | undefined) ?? null;
}

/** Forms in which identity providers answer to a proxy. */
const providers = {
  'oauth2-proxy': {
    port: 4180,
    env: { MODEL_API_USER_HEADER: 'X-Auth-Request-Email', MODEL_API_GROUPS_HEADER: 'X-Auth-Request-Groups' },
    portal: /\/oauth2\/start\?rd=https:\/\/relay\.example\.org/,
    answer: (req: IncomingMessage, res: ServerResponse) => {
      const name = personOf(req);
      if (req.url?.startsWith('/oauth2/auth') !== true) return res.writeHead(200).end('the page of the provider');
      if (name === null) return res.writeHead(401).end();
      const headers = { 'X-Auth-Request-User': 'id', 'X-Auth-Request-Email': `${name}@example.org` };
      const groupsHeader = groups[name] === null ? {} : { 'X-Auth-Request-Groups': groups[name] };
      return res.writeHead(202, { ...headers, ...groupsHeader }).end();
    },
  },
  authelia: {
    port: 9091,
    env: { MODEL_API_USER_HEADER: 'Remote-User', MODEL_API_GROUPS_HEADER: 'Remote-Groups' },
    portal: /^https:\/\/auth\.example\.org\/\?rd=/,
    answer: (req: IncomingMessage, res: ServerResponse) => {
      const name = personOf(req);
      const isForward = req.url?.startsWith('/api/authz/forward-auth') === true;
      const asked = `https://relay.example.org${req.headers['x-forwarded-uri'] ?? '/'}`;
      // Authelia answers Caddy with 302, and nginx with 401.
      if (name === null)
        return res.writeHead(isForward ? 302 : 401, { Location: `https://auth.example.org/?rd=${asked}` }).end();
      const headers = { 'Remote-User': name, 'Remote-Name': 'Some One', 'Remote-Email': `${name}@example.org` };
      return res.writeHead(200, { ...headers, 'Remote-Groups': groups[name] ?? '' }).end();
    },
  },
};

const cases: [keyof typeof providers, ProxyKind, string][] = [
  ['oauth2-proxy', caddy, 'Caddyfile.oauth2-proxy'],
  ['oauth2-proxy', nginx, 'oauth2-proxy.conf'],
  ['authelia', caddy, 'Caddyfile.authelia'],
  ['authelia', nginx, 'authelia.conf'],
];

for (const [kind, proxyKind, file] of cases) {
  describeWith(proxyKind.program)(`deploy/proxy/${file}`, () => {
    const { env, port, portal, answer } = providers[kind];
    const nameOf = (name: Name) => (kind === 'authelia' ? name : `${name}@example.org`);
    let folder: TemporaryFolder;
    let provider: Server;
    let service: Service;
    let proxy: FrontProxy;

    beforeAll(async () => {
      folder = await temporaryFolder();
      const keys = join(folder.path, 'keys');
      await writeFile(keys, 'sso:group:operators:scopes=ask+chat+admin\nsso:group:students:scopes=ask\n', {
        mode: 0o600,
      });
      provider = createServer((req, res) => void answer(req, res)).listen(0, '127.0.0.1');
      await once(provider, 'listening');
      service = await startService({
        env: {
          MODEL_API_ALLOWED_HOSTS: 'relay.example.org,127.0.0.1',
          MODEL_API_ALLOWED_ORIGINS: 'https://relay.example.org',
          MODEL_API_TRUST_PROXY: '127.0.0.1',
          MODEL_API_ALLOWED_USERS: userInfo().username,
          MODEL_API_KEYS_FILE: keys,
          ...env,
        },
      });
      const at = String((provider.address() as AddressInfo).port);
      const adapt: ProxyKind['adapt'] = (text, ...rest) =>
        proxyKind.adapt(text.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${at}`), ...rest);
      proxy = await FrontProxy.start({ ...proxyKind, file, adapt }, service.port);
    });
    afterAll(async () => {
      await proxy?.[Symbol.asyncDispose]();
      await service?.stop();
      provider?.close().closeAllConnections();
      await folder[Symbol.asyncDispose]();
    });

    const as = (name: Name) => ['-H', `Cookie: session=${name}`];
    const json = ['-H', 'Content-Type: application/json'];
    const caller = async (...headers: string[]) => {
      const { status, text } = await proxy.curl(['/usage', ...headers]);
      return [status, status === 200 ? JSON.parse(text).caller : text];
    };

    it('names each person to the service, with the scopes of their groups', async () => {
      const admin = { client: nameOf('ada'), kind: 'sso', scopes: ['ask', 'chat', 'admin'] };
      expect(await caller(...as('ada'))).toEqual([200, admin]);
      expect(await caller(...as('bob'))).toEqual([200, { client: nameOf('bob'), kind: 'sso', scopes: ['ask'] }]);
      const zoe = { client: nameOf('zoe'), kind: 'sso', scopes: ['ask', 'chat'] };
      expect(await caller(...as('zoe'))).toEqual([200, zoe]);
      expect((await proxy.curl(['/setup', ...as('ada')])).status).toBe(200);
      expect((await proxy.curl(['/setup', ...as('bob')])).status).toBe(403);
    });

    it('forwards a question, and shows the console without a key', async () => {
      const { status, text } = await proxy.curl(['/ask', ...as('bob'), ...json, '-d', '{"prompt":"I am Bob"}']);
      expect([status, JSON.parse(text)]).toEqual([200, expect.objectContaining({ success: true })]);
      const page = await proxy.curl(['/', '-L', ...as('bob')]);
      expect([page.status, page.text]).toEqual([200, expect.stringContaining('<title>')]);
    });

    it('leads others to the identity provider, and never to the service', async () => {
      for (const path of ['/console/', '/usage?since=2026-01-01']) {
        const { status, text } = await proxy.curl([path, '-o', '/dev/null', '-w', '%{redirect_url}\n%{http_code}']);
        expect([status, text]).toEqual([302, expect.stringMatching(portal)]);
      }
    });

    it('sends each header, whatever the client names in the header Connection', async () => {
      const added = [...Object.values(env), 'X-Forwarded-For', 'X-Forwarded-Proto', 'Host', 'Cookie-2'];
      const forms = [...added.flatMap((header) => [header, header.toLowerCase()]), added.join(', ')];
      for (const header of forms)
        for (const lines of [[`close, ${header}`], [`keep-alive,${header}`], [header], ['close', header]]) {
          const connection = lines.flatMap((line) => ['-H', `Connection: ${line}`]);
          const known = await caller('--http1.1', ...as('bob'), ...connection);
          expect([header, known]).toEqual([header, [200, { client: nameOf('bob'), kind: 'sso', scopes: ['ask'] }]]);
        }
    });

    it('lets nobody pose as another person', async () => {
      const headers = Object.values(env).flatMap((header) => [
        header,
        header.toLowerCase(),
        header.replaceAll('-', '_'),
      ]);
      for (const header of headers) {
        const forged = ['-H', `${header}: ${header.toLowerCase().includes('groups') ? 'operators' : nameOf('ada')}`];
        const known = await caller(...as('bob'), ...forged);
        expect(known[0] === 400 || known[1]).toMatchObject(
          known[0] === 400 ? true : { client: nameOf('bob'), scopes: ['ask'] },
        );
        expect((await caller(...forged))[0]).toBe(302);
      }
    });
  });
}
