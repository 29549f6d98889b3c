import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';

/** Answers a request to any host of the vendor, with its body. */
export type ServeVendor = (request: IncomingMessage, body: string, response: ServerResponse) => void;

/** HTTPS proxy on loopback that plays the hosts of a vendor, with a new certificate. */
export class TlsProxy implements Disposable {
  readonly #proxy: Server;
  readonly #certificate: string;
  readonly #open = new Set<Socket>();

  private constructor(proxy: Server, certificate: string) {
    this.#proxy = proxy;
    this.#certificate = certificate;
  }

  /** `hosts`: names of the vendor's hosts, such as `*.example.com`. The folder gets the certificate. */
  static async start(folder: string, hosts: readonly string[], serve: ServeVendor): Promise<TlsProxy> {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const newKey = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert];
    const names = hosts.map((host) => `DNS:${host}`).join();
    const subject = ['-subj', '/CN=vendor-of-the-test', '-addext', `subjectAltName=${names}`];
    await promisify(execFile)('openssl', [...newKey, ...subject]);
    const inner = createServer((request, response) => {
      const served = text(request).then((body) => serve(request, body, response));
      served.catch(() => response.destroy());
    });
    const tls = createTlsServer({ key: await readFile(key), cert: await readFile(cert) });
    tls.on('secureConnection', (socket) => {
      socket.on('error', () => {});
      inner.emit('connection', socket);
    });
    tls.on('tlsClientError', () => {});
    const proxy = new TlsProxy(createServer(), cert);
    proxy.#proxy.on('connect', (_request: IncomingMessage, socket: Socket) => {
      proxy.#open.add(socket.on('error', () => {}).on('close', () => proxy.#open.delete(socket)));
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      tls.emit('connection', socket);
    });
    await once(proxy.#proxy.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  /** Variables that point a CLI to the proxy. */
  get env(): Readonly<Record<string, string>> {
    return {
      HTTPS_PROXY: `http://127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`,
      NO_PROXY: '127.0.0.1',
      NODE_EXTRA_CA_CERTS: this.#certificate,
      SSL_CERT_FILE: this.#certificate,
    };
  }

  [Symbol.dispose](): void {
    for (const socket of this.#open) socket.destroy();
    this.#proxy.close();
  }
}

export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
