import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { json } from 'node:stream/consumers';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';

const subject = ['-subj', '/CN=token-endpoint', '-addext', 'subjectAltName=DNS:*.anthropic.com,DNS:*.claude.com'];

export interface TokenEndpointOptions {
  /** Lifetime of the token with this number of a login, from 0. */
  readonly livesMs: (token: number) => number;
  /** Delay of the answer to the refresh with this number of a login, from 0; the old token is spent at once. */
  readonly delayMs: (refresh: number) => number;
  /** Names of the logins, each with a separate HOME; by default one without a name. */
  readonly logins?: readonly string[];
}

/** Login of claude in files below its HOME, which the endpoint renews. */
export class RenewedLogin {
  readonly name: string;
  readonly home: string;
  refreshes = 0;

  constructor(name: string, home: string) {
    this.name = name;
    this.home = home;
  }

  get credentials(): string {
    return join(this.home, '.claude', '.credentials.json');
  }

  get accessToken(): string {
    return `sk-ant-oat01-${this.name}${this.refreshes}`;
  }

  /** Code that a person pastes into the login of the CLI. */
  get code(): string {
    return `code-of-${this.name}`;
  }

  get refreshToken(): string {
    return `sk-ant-ort01-${this.name}${this.refreshes}`;
  }

  /** Stores the currently valid login, like a user who logs in. */
  async store(expiresInMs: number): Promise<void> {
    await mkdir(dirname(this.credentials), { recursive: true, mode: 0o700 });
    const tokens = { accessToken: this.accessToken, refreshToken: this.refreshToken };
    const scopes = ['user:inference', 'user:profile'];
    const login = { ...tokens, expiresAt: Date.now() + expiresInMs, scopes, subscriptionType: 'max' };
    await writeFile(this.credentials, JSON.stringify({ claudeAiOauth: login }), { mode: 0o600 });
  }

  /** Whether the stored refresh token is the valid one. */
  async isStored(): Promise<boolean> {
    return (await readFile(this.credentials, 'utf8')).includes(`"${this.refreshToken}"`);
  }
}

/**
 * Token endpoint of claude's vendor, behind a TLS-terminating proxy on loopback. Each refresh spends the sent refresh
 * token; a spent one is refused with `invalid_grant`.
 */
export class TokenEndpoint implements AsyncDisposable {
  /** Number of requests with a spent token: each loses a login. */
  refused = 0;
  readonly logins: readonly RenewedLogin[];
  readonly #options: TokenEndpointOptions;
  readonly #folder: TemporaryFolder;
  readonly #proxy = createServer();
  readonly #open = new Set<Socket>();

  private constructor(options: TokenEndpointOptions, folder: TemporaryFolder, tls: TlsServer, inner: Server) {
    this.#options = options;
    this.#folder = folder;
    this.logins = (options.logins ?? ['']).map((name) => new RenewedLogin(name, join(folder.path, name)));
    inner.on('request', (request, response) => void this.#serve(request, response).catch(() => response.destroy()));
    tls.on('secureConnection', (socket) =>
      inner.emit(
        'connection',
        socket.on('error', () => {}),
      ),
    );
    tls.on('tlsClientError', () => {});
    this.#proxy.on('connect', (_request: IncomingMessage, socket: Socket) => {
      this.#open.add(socket.on('error', () => {}).on('close', () => this.#open.delete(socket)));
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      tls.emit('connection', socket);
    });
  }

  static async start(options: TokenEndpointOptions): Promise<TokenEndpoint> {
    const folder = await temporaryFolder();
    const [key, cert] = [join(folder.path, 'key.pem'), join(folder.path, 'cert.pem')];
    const newKey = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert];
    await promisify(execFile)('openssl', [...newKey, ...subject]);
    const tls = createTlsServer({ key: await readFile(key), cert: await readFile(cert) });
    const endpoint = new TokenEndpoint(options, folder, tls, createServer());
    await once(endpoint.#proxy.listen(0, '127.0.0.1'), 'listening');
    for (const login of endpoint.logins) {
      await mkdir(login.home, { recursive: true, mode: 0o700 });
      await login.store(options.livesMs(0));
    }
    return endpoint;
  }

  /** HOME of the service, which has the login without a name. */
  get home(): string {
    return this.#folder.path;
  }

  /** Login of the only account. */
  get login(): RenewedLogin {
    const [login] = this.logins;
    if (login === undefined) throw new Error('the endpoint has no login');
    return login;
  }

  /** Number of refreshes of all logins. */
  get refreshes(): number {
    return this.logins.reduce((sum, { refreshes }) => sum + refreshes, 0);
  }

  /** Variables that point a CLI to this endpoint. */
  get env(): Readonly<Record<string, string>> {
    const cert = join(this.home, 'cert.pem');
    const proxy = `http://127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`;
    return {
      HOME: this.home,
      HTTPS_PROXY: proxy,
      NO_PROXY: '127.0.0.1',
      NODE_EXTRA_CA_CERTS: cert,
      SSL_CERT_FILE: cert,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#proxy.close();
    await this.#folder[Symbol.asyncDispose]();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url !== '/v1/oauth/token') return answer(response, 404, {});
    const { refresh_token, code } = (await json(request)) as {
      readonly refresh_token?: string;
      readonly code?: string;
    };
    const isCode = code !== undefined;
    const login = this.logins.find((each) => (isCode ? each.code === code : each.refreshToken === refresh_token));
    if (login === undefined) {
      this.refused++;
      return answer(response, 400, { error: 'invalid_grant', error_description: 'Refresh token not found or invalid' });
    }
    const delayMs = isCode ? 0 : this.#options.delayMs(login.refreshes++);
    const { accessToken: access_token, refreshToken } = login;
    const expires_in = this.#options.livesMs(login.refreshes) / 1000;
    const scope = 'user:inference user:profile';
    const body = { token_type: 'Bearer', access_token, refresh_token: refreshToken, expires_in, scope };
    setTimeout(() => answer(response, 200, body), delayMs);
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
