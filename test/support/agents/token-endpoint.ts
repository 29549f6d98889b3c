import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';
import { answerJson, TlsProxy } from './tls-proxy.js';

const hosts = ['*.anthropic.com', '*.claude.com'];

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
  readonly #proxy: TlsProxy;

  private constructor(
    options: TokenEndpointOptions,
    folder: TemporaryFolder,
    logins: readonly RenewedLogin[],
    proxy: TlsProxy,
  ) {
    this.#options = options;
    this.#folder = folder;
    this.logins = logins;
    this.#proxy = proxy;
  }

  static async start(options: TokenEndpointOptions): Promise<TokenEndpoint> {
    const folder = await temporaryFolder();
    const { livesMs, logins: names = [''] } = options;
    const logins = names.map((name) => new RenewedLogin(name, join(folder.path, name)));
    for (const login of logins) {
      await mkdir(login.home, { recursive: true, mode: 0o700 });
      await login.store(livesMs(0));
    }
    const proxy = await TlsProxy.start(folder.path, hosts, (...exchange) => endpoint.#serve(...exchange));
    const endpoint: TokenEndpoint = new TokenEndpoint(options, folder, logins, proxy);
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
    return { HOME: this.home, ...this.#proxy.env };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#proxy[Symbol.dispose]();
    await this.#folder[Symbol.asyncDispose]();
  }

  #serve(request: IncomingMessage, text: string, response: ServerResponse): void {
    if (request.url !== '/v1/oauth/token') return answerJson(response, 404, {});
    const { refresh_token, code } = JSON.parse(text) as { readonly refresh_token?: string; readonly code?: string };
    const isCode = code !== undefined;
    const login = this.logins.find((each) => (isCode ? each.code === code : each.refreshToken === refresh_token));
    if (login === undefined) {
      this.refused++;
      return answerJson(response, 400, {
        error: 'invalid_grant',
        error_description: 'Refresh token not found or invalid',
      });
    }
    const delayMs = isCode ? 0 : this.#options.delayMs(login.refreshes++);
    const { accessToken: access_token, refreshToken } = login;
    const expires_in = this.#options.livesMs(login.refreshes) / 1000;
    const scope = 'user:inference user:profile';
    const body = { token_type: 'Bearer', access_token, refresh_token: refreshToken, expires_in, scope };
    setTimeout(() => answerJson(response, 200, body), delayMs);
  }
}
